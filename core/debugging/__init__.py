"""Images that do not fit a network's predictions: likely label errors, and images unlike all others."""
