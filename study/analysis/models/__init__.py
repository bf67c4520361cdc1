"""Mixed models: formulas, likelihoods, fits, their intervals and what must be said of them."""
