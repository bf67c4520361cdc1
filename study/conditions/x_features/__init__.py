"""The condition ``x_features``: parts of the image that speak for or against each name."""
