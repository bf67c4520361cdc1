"""Parts of the researcher's pages that more than one line of a view needs."""
