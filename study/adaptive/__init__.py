"""Adaptive choice of trials: their frozen difficulty, the policies that choose the next one, and estimates from it."""
