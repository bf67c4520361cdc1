"""Exploratory analyses and robustness checks, each a table and a figure."""
