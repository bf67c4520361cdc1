"""The Power page."""
