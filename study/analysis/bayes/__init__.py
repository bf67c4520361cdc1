"""Bayesian fits of the mixed models: posterior draws by NUTS, their diagnosis, contrasts and predictive checks."""
