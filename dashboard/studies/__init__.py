"""The Studies page."""
