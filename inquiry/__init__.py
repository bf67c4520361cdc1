"""Questions to a network over many images: heatmaps, units, concepts, uncertainty, boundaries, rules."""
