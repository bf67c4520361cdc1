"""Effects of concepts on predictions, by intervention and by directions in a layer."""
