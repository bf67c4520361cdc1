"""Asking a network over pictures: maps by the thousand, units, concepts, doubts, boundaries, rules."""
