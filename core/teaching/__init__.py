"""Bayesian teaching: the KFAC posterior, the learner, and examples and masks that teach the prediction."""
