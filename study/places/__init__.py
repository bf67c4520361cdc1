"""Responses that are places: the region of a heatmap, marks on an image, how they are scored, and chance."""
