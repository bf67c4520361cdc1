"""What every inquiry shares: images and target classes of the user, heatmaps as files, the facts of a run."""
