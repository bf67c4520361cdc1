"""Bayesian teaching: the prior, the learner, examples and masks that teach what the classifier says."""
