"""Questions about a set of images alone: the network is not used."""
