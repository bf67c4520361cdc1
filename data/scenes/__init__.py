"""A world where the truth is known: drawn objects in drawn contexts, and a network trained on them."""
