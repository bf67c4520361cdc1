"""Horizontal and vertical bars, red or green: the least world in which a classifier can take a colour for a shape."""
