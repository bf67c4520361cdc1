"""Questions about the changes of an image that change its prediction."""
