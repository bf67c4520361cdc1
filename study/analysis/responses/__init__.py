"""The responses of a study: read, checked, counted, and averaged over participants."""
