"""The results as files: tables, figures and a page that opens alone."""
