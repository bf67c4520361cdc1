"""A study about units small enough for tests, of the built-in classifier and scenes."""

from __future__ import annotations

from pathlib import Path

from study.building.build import build
from study.bundle import Bundle

UNITS = """
conditions = ["none", "examples"]
[study]
name = "units"
title = "Parts of an AI"
seed = 7
task = "unit_choice"
[classifier]
model = "scenes"
[sets.pool]
set = "scenes"
split = "pool"
size = 48
[sets.standard]
set = "scenes"
split = "standard"
size = 40
[units]
layer = "features.4"
channels = 3
per_unit = 2
references = 4
[trials]
practice = 1
[display]
size = 96
"""


def build_units(home: Path, text: str = UNITS) -> Bundle:
    """Build the study, or another one, in a workspace."""
    file = home / "units.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return build(file, home)


NAMES = UNITS.replace('"unit_choice"', '"name"').replace("per_unit = 2\n", "").replace('"units"', '"names"')
"""The same units, each with one trial, to be named."""
