"""Heatmaps and photographs as images, and sheets of both."""
