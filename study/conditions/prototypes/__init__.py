"""The condition ``prototypes``: parts of the image next to the parts of training images that they are compared to."""
