"""Several sittings of a participant: which trials are in each, and when the next one opens and closes."""
