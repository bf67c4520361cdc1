"""Generated scenes with known ground truth: objects in contexts, and a network trained on them."""
