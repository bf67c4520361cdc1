"""The command ``counterfactual``: what its files say and show, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.errors import ForetellError
from core.robustness.counterfactual import find_counterfactual
from data.scenes.generator import render
from inquiry.counterfactuals.counterfactuals import MOST, CounterfactualQuery, write_counterfactuals
from tests.core.scenes import scene_net


@pytest.fixture
def scenes(tmp_path: Path) -> dict[str, Path]:
    """Three scenes with three predictions, as files."""
    drawn = {"fish": "meadow", "boat": "sea", "bird": "snow"}
    for seed, (category, context) in enumerate(drawn.items(), 3):
        render(seed, category=category, context=context).image.save(tmp_path / f"{category}.png")
    return {category: tmp_path / f"{category}.png" for category in drawn}


def test_the_other_image_with_the_fewest_cells_is_drawn_and_described(scenes: dict[str, Path], tmp_path: Path) -> None:
    """Against a search of each image made here. Catches a file about one image and a drawing of another."""
    network = scene_net()
    others = [scenes["boat"], scenes["bird"]]
    (written,) = write_counterfactuals(CounterfactualQuery("scenes", [scenes["fish"]], others), tmp_path / "out")
    inputs = network.preprocess(Image.open(scenes["fish"]))
    made = [find_counterfactual(network, inputs, network.preprocess(Image.open(file))) for file in others]
    best = min(range(2), key=lambda i: (len(made[i].cells), -float(made[i].after[made[i].new])))
    facts = json.loads(written.file.with_suffix(".json").read_text())
    assert Path(facts["other"]) == others[best]
    assert [row * 7 + column for row, column in facts["cells"]] == list(made[best].cells)
    assert facts["sentence"] == written.sentence
    assert written.sentence.startswith(f"With {len(made[best].cells)} cell")
    panels = np.split(np.asarray(Image.open(written.file).convert("RGB"), dtype=int), 3, axis=1)
    height, width = panels[2].shape[:2]
    shown = network.render_input(made[best].composite).resize((width, height), Image.Resampling.BICUBIC)
    assert np.abs(panels[2] - np.asarray(shown, dtype=int)).max() == 0
    darker = panels[0].mean() / np.asarray(network.render_input(inputs).resize((width, height))).mean()
    assert 0.4 < darker < 0.8  # all but the marked cells have half of their brightness


def test_a_class_can_be_asked_for(scenes: dict[str, Path], tmp_path: Path) -> None:
    network = scene_net()
    predicted = {
        name: network.categories[int(network.logits(network.preprocess(Image.open(file))[None]).argmax())]
        for name, file in scenes.items()
    }
    for name in ("boat", "bird"):
        query = CounterfactualQuery("scenes", [scenes["fish"]], list(scenes.values()), to=predicted[name])
        (written,) = write_counterfactuals(query, tmp_path / name)
        facts = json.loads(written.file.with_suffix(".json").read_text())
        assert (facts["predicted_after"], Path(facts["other"]).stem) == (predicted[name], name)


def test_what_has_no_counterfactual_is_refused_by_name(scenes: dict[str, Path], tmp_path: Path) -> None:
    def ask(others: list[Path], **settings: str) -> None:
        write_counterfactuals(CounterfactualQuery("scenes", [scenes["fish"]], others, **settings), tmp_path / "out")

    with pytest.raises(ForetellError, match=r"fish.png: All other images are predicted to be \w+, as is the image"):
        ask([scenes["fish"]])
    with pytest.raises(ForetellError, match="None of the 1 other images is predicted to be cup"):
        ask([scenes["boat"]], to="cup")
    for k in range(MOST + 1):
        (tmp_path / "many").mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), (k, 0, 0)).save(tmp_path / "many" / f"{k}.png")
    with pytest.raises(ForetellError, match=f"65 other images.*at most {MOST}"):
        ask([tmp_path / "many"])
    assert not (tmp_path / "out").exists()


def test_the_same_command_writes_the_same_files(scenes: dict[str, Path], tmp_path: Path) -> None:
    """Catches random cells that are drawn from the process's own stream."""
    query = CounterfactualQuery("scenes", [scenes["fish"]], [scenes["boat"]])
    files = [write_counterfactuals(query, tmp_path / name)[0].file for name in ("one", "two")]
    for ending in (".png", ".json"):
        one, two = (file.with_suffix(ending).read_bytes() for file in files)
        assert one == two
