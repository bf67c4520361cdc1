"""Analyses of a network's layers: linear probes, similarity of two layers, and the effects of single units."""
