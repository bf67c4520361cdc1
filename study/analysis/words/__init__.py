"""Codes, headings and numbers of tables as people read them."""
