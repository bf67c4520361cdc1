"""Explore: where a network goes wrong in an image set."""
