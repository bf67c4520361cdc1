"""Images near a given one with another prediction, and images typical of a class."""
