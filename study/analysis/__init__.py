"""From responses to results: mixed models, their nested tests, bootstrap intervals, figures and the report."""
