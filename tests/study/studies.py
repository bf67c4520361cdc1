"""A study small enough for tests, of the built-in classifier and scenes."""

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
size = 640
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
