"""Maps that `explain` draws lie where the network looked, whatever its transforms do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inquiry.files.explain import ExplanationQuery, explain_files
from inquiry.files.heatmap_files import SIDE
from tests.planted import MADE, RANDOM, SWIRL, misplaced, network_file, photograph

PLACES = ((0.5, 0.5), (0.45, 0.6), (0.57, 0.42))
"""Where squares are planted: within what most of the networks see of each photograph."""


def drawn(folder: Path, made: str, image: Image.Image) -> tuple[float, dict]:
    image.save(folder / "photograph.png")
    request = ExplanationQuery(f"{network_file(folder, made)}:build", ("input_x_gradient",), target="bright")
    explain_files(request, [folder / "photograph.png"], folder / "out")
    with Image.open(folder / "out" / "photograph.input_x_gradient.png") as sheet:
        plain, over = sheet.crop((0, 0, SIDE, SIDE)), sheet.crop((SIDE, 0, 2 * SIDE, SIDE))
    facts = json.loads((folder / "out" / "photograph.input_x_gradient.json").read_text())
    return misplaced(plain, over), facts


@pytest.mark.parametrize("size", [(300, 200), (200, 300), (600, 200), (64, 64)])
@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_planted_square_and_its_map_lie_on_each_other(tmp_path: Path, made: str, size: tuple[int, int]) -> None:
    shares = np.array([min(size) / n for n in size]) if made == MADE["corner"] else np.ones(2)
    places = [drawn(tmp_path, made, photograph(size, tuple(at * shares))) for at in PLACES]
    assert max(off for off, _ in places) < 0.015
    assert all(facts["warnings"] == [] for _, facts in places)


@pytest.mark.parametrize("made", [*RANDOM.values(), *SWIRL.values()], ids=[*RANDOM, *SWIRL])
def test_where_the_geometry_is_not_known_the_networks_own_input_is_shown_and_said(tmp_path: Path, made: str) -> None:
    off, facts = drawn(tmp_path, made, photograph((300, 200), (0.52, 0.55)))
    assert off < 0.015
    assert sum("the network's own input is shown instead" in text for text in facts["warnings"]) == 1
    with Image.open(tmp_path / "out" / "photograph.input_x_gradient.png") as sheet:
        shown = np.asarray(sheet.crop((0, 0, SIDE, SIDE)).resize((64, 64), Image.Resampling.BOX).convert("L"))
    seen = np.load(tmp_path / "out" / "photograph.input_x_gradient.npy") * 100 / 3
    assert np.abs(shown / 255 - seen).mean() < 0.02
