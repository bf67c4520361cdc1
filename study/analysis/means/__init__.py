"""Estimated marginal means of a fitted model and the contrasts between them."""
