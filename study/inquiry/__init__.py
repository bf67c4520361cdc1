"""Asking a network over images: maps by the thousand, units, concepts, doubts, boundaries, rules."""
