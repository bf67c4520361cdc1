"""From a study file to a frozen bundle: which pictures become trials, with which examples and maps."""
