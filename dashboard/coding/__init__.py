"""Coding: two raters say whether participants' texts match what was shown."""
