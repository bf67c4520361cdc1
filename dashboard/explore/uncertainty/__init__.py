"""Explore: how uncertain a network is of an image."""
