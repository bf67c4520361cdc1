"""From a study file to a frozen bundle: which images become trials, with which examples and heatmaps."""
