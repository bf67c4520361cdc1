"""Attributes that an AI may use: sets of them, how a set is written and scored, and a trial's row for each of them."""
