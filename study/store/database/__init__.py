"""The two kinds of database, their transactions, and the one thread that writes."""
