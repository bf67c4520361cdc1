"""A collection for the researcher: opening, monitoring, interim analyses, export, payment."""
