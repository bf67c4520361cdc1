"""Design: a study file written with widgets, checked as it is typed."""
