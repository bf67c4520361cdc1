"""Measures of images: one number each. `study.plan.measures` lists them."""
