"""Measures of images that ask an inquiry: rules, labels, concepts. `study.plan.measures` lists them."""
