"""Studies small enough for tests, of the built-in classifier and scenes."""

from __future__ import annotations

TINY = """
[study]
name = "tiny"
title = "A tiny study"
seed = 5
[classifier]
model = "scenes"
[sets.pool]
set = "scenes"
split = "pool"
size = 160
[sets.standard]
set = "scenes"
split = "standard"
size = 400
[sets.adversarial]
set = "scenes"
split = "adversarial"
size = 160
[trials]
categories = 3
practice = 2
[saliency]
parameters = { samples = 8 }
[teaching]
policy = "best"
sets = 20
[display]
size = 96
"""

SMALL = TINY.replace("categories = 3\npractice = 2", "categories = 1\npractice = 0").replace("size = 400", "size = 160")
"""Its three trials of one category, and fewer images to choose them from."""
