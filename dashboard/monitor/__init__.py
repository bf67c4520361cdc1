"""The Monitor page."""
