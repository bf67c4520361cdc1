"""Explanations by concepts: a property of images as a direction in a layer, and its effect on the prediction."""
