"""Questions about what layers represent, and what they share."""
