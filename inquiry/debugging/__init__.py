"""Label errors, slices with many errors, calibration and uncertainty of a network over a set."""
