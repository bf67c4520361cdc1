"""The engine: tensors in, tensors out. It chooses no files, knows no participants and has no user interface."""
