"""Questions about what the layers of a network represent, and how near another prediction is."""
