"""A study about attributes small enough for tests, of the built-in classifier and scenes."""

from __future__ import annotations

from pathlib import Path

from study.building.build import build
from study.bundle import Bundle

ATTRIBUTES = """
conditions = ["none", "saliency"]
[study]
name = "attributes"
title = "What the AI goes by"
seed = 7
task = "discover"
[classifier]
model = "scenes"
[sets.pool]
set = "scenes"
split = "pool"
size = 16
[sets.standard]
set = "scenes"
split = "adversarial"
size = 256
[attributes]
used = ["the background", "the shape"]
unused = ["which way it faces", "its height", "a frame"]
classes = ["bird", "fish"]
images = 10
trials = 2
[trials]
practice = 1
[saliency]
method = "grad_cam"
[display]
size = 160
"""


def build_attributes(home: Path, text: str = ATTRIBUTES) -> Bundle:
    """Build the study, or another one, in a workspace."""
    file = home / "attributes.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return build(file, home)
