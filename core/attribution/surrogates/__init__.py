"""Shapley values, and simple models of the network around one image."""
