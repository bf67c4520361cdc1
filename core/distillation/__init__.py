"""Readable models that are fitted to a network's predictions."""
