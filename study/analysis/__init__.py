"""From responses to results: mixed models, their nested tests, intervals, figures and the report."""
