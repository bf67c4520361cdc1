"""Who may open the researcher's pages, and what each account may do there."""
