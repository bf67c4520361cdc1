"""Names that participants give to units: the text, the codes that two raters give it, and how well they agree."""
