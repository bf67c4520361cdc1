"""A classifier over an image set: sources, predictions, heatmap cache, priors."""
