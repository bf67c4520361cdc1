"""The Results page."""
