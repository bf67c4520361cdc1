"""Assertions: rules that the predictions of a network must keep, image by image or over a recent history."""
