"""The engine: tensors in, tensors out. No files chosen by it, no people, no user interface."""
