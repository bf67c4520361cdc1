"""Horizontal and vertical bars, red or green: the simplest images in which colour can be confused with shape."""
