"""Layers whose outputs keep the places of the image, and how these lie in an output."""
