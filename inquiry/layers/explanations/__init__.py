"""Questions about what explains the predictions of a class."""
