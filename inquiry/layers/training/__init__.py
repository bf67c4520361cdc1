"""Questions about what a network learns, and how it was built and trained."""
