"""What in a set of pictures does not fit a network's answers: labels likely to be wrong, pictures unlike all others."""
