"""Explore: what the layers of a network represent."""
