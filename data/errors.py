"""The error of an image set a user can mend."""


class DataError(Exception):
    """An image set cannot be used as it stands. The message names the culprit and the remedy."""
