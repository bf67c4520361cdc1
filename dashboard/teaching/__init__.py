"""The Teaching page."""
