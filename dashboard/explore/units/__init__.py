"""Explore: classes, units and the concepts a class relies on."""
