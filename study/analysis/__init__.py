"""From responses to the answer: mixed models, their nested tests, bootstrap intervals, figures and the report."""
