"""Models & images: bring a network and image sets into the workspace."""
