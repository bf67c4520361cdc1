"""Explore: heatmaps of one image, a grid, or two networks."""
