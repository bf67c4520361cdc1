"""The error of an image set that a user can correct."""


class DataError(Exception):
    """An image set cannot be used as it is. The message names the cause and the remedy."""
