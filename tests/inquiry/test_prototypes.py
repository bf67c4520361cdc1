"""The command ``prototypes`` and its view: what is written of which class, and which networks have neither."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.concepts.prototypes import find_matches
from core.drawing.rendering import MARK
from core.errors import ForetellError
from data.scenes.splits import picture
from inquiry.counterfactuals.prototypes import PrototypeQuery, write_prototypes
from study.conditions.prototypes.condition import make
from study.network.sources import open_classifier
from tests.core.scenes import scene_net


@pytest.fixture
def image(tmp_path: Path) -> Path:
    picture("standard", 0, 6).image.save(tmp_path / "fish.png")
    return tmp_path / "fish.png"


def test_the_files_are_of_the_class_that_was_asked_for(image: Path, tmp_path: Path) -> None:
    """Against the matches found here. Catches the prediction's prototypes under another class's name."""
    network = open_classifier("scenes:prototypes", Path.cwd(), "cpu")
    inputs = network.preprocess(Image.open(image))
    predicted = network.categories[int(network.logits(inputs[None]).argmax())]
    for target, named in (("top", predicted), ("boat", "boat")):
        (written,) = write_prototypes(PrototypeQuery("scenes:prototypes", [image], target), tmp_path / "out")
        assert written.file.name == f"fish.{named}.prototypes.png"
        facts = json.loads(written.file.with_suffix(".json").read_text())
        expected = find_matches(network, inputs, network.categories.index(named))
        assert [one["prototype"] for one in facts["prototypes"]] == [match.prototype for match in expected]
        assert facts["logit"] == pytest.approx(float(network.logits(inputs[None])[0, network.categories.index(named)]))
        for match in expected:
            assert f"{match.contribution:.2f} (similarity {match.similarity:.2f})" in written.sentence
        drawn = np.asarray(Image.open(written.file).convert("RGB"), dtype=int)
        assert drawn.shape == (320, 2 * 320, 3)
        marked = np.abs(drawn - np.array(MARK)).sum(2) < 60
        row, column = expected[0].row, expected[0].column
        found = np.argwhere(marked[:158, :158]).mean(0) / 159 * 12  # the part in the upper left of the first card
        inside = [(max(0, one - 1) + min(12, one + 2)) / 2 for one in (row, column)]
        assert found.tolist() == pytest.approx(inside, abs=0.4)


def test_a_network_without_prototypes_is_refused(image: Path, tmp_path: Path) -> None:
    with pytest.raises(ForetellError, match="does not predict from prototypes"):
        write_prototypes(PrototypeQuery("scenes", [image]), tmp_path / "out")


def test_the_condition_is_refused_for_a_network_without_prototypes() -> None:
    class Nothing:
        """What the condition asks of a build and of a trial before the network."""

        classifier = scene_net()
        size = (96, 96)
        view = type("View", (), {"draw": staticmethod(lambda size: Image.new("RGB", size))})()
        classes, options = (0, 1), ("a", "b")
        inputs = classifier.fill("black")[None].expand(1, *classifier.input_shape)

    with pytest.raises(ForetellError, match="does not predict from prototypes: choose scenes:prototypes"):
        make(Nothing(), Nothing())  # type: ignore[arg-type]
