"""Explanations that Foretell did not make: files, folders, packages, a network's own."""
