"""Networks of the zoo that were trained again, and the committed weights that they are compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from data.scenes.classifier import SceneNet
from data.scenes.generator import USUAL_SHARE
from data.scenes.zoo import blind, confirm, train
from data.scenes.zoo.confirm import compare, read_records
from data.scenes.zoo.effects import measure_accuracy
from data.scenes.zoo.material import Images, draw_scene, stack
from data.scenes.zoo.store import hash_weights, read_card


def test_a_network_that_was_trained_again_is_compared_with_the_stored_one() -> None:
    """Catches weights compared before rounding, and the accuracy of the stored weights in place of the new ones.

    Expected: the stored weights are the same as themselves, also with more digits than are stored; those of another
    network are not, and have that network's accuracy.
    """
    pixels = stack([np.asarray(draw_scene("standard", 1_000_003, USUAL_SHARE, i).image) for i in range(32)])
    images = Images(pixels, torch.arange(16).repeat(2), torch.zeros(32))
    stored: Any = blind.build()
    record = compare("blind", blind, stored, {"standard": images})
    assert record["same_weights"]
    assert record["accuracy"]["standard"] == measure_accuracy(stored, images)
    with torch.no_grad():
        stored.head.weight.mul_(1 + 1e-5)
    assert compare("blind", blind, stored, {"standard": images})["same_weights"]
    with torch.no_grad():
        stored.head.weight.zero_()
        stored.head.bias.copy_(torch.arange(16) == 3)
    record = compare("blind", blind, stored, {"standard": images})
    assert not record["same_weights"]
    assert record["accuracy"]["standard"]["accuracy"] == float((images.labels == 3).float().mean())


def test_records_of_training_again_are_of_the_committed_weights() -> None:
    """Catches a record whose network has other weights by now, and the page saying that they are reproduced."""
    records = read_records()
    assert records
    for name, record in records.items():
        assert record["weights_sha256"] == hash_weights(name), f"python -m data.scenes.zoo.train {name} --confirm"
        for split, measured in record["accuracy"].items():
            card = read_card(name)["accuracy"][split]
            assert measured["images"] == card["images"]
            assert measured == card or not record["same_weights"]


def test_confirming_keeps_weights_and_card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Catches ``--confirm`` that goes on to store and measure, and a record that loses those of other networks.

    Training is replaced by a network of other weights, and the held-out images are few: both take minutes.
    """
    pixels = stack([np.asarray(draw_scene("standard", 1_000_003, USUAL_SHARE, i).image) for i in range(16)])
    images = Images(pixels, torch.arange(16), torch.zeros(16))
    monkeypatch.setattr(confirm, "RETRAINED", tmp_path / "retrained.json")
    monkeypatch.setattr(train, "_hold_out", lambda material: {"standard": images})
    monkeypatch.setattr(blind, "train", lambda material: (SceneNet(), {}))
    files = [Path(blind.__file__).with_name(f"blind.{ending}") for ending in ("json", "safetensors")]
    before = [file.read_bytes() for file in files]
    confirm.write_record("words", {"kept": True})
    train.main(["blind", "--confirm"])
    assert [file.read_bytes() for file in files] == before
    records = read_records()
    assert list(records) == ["blind", "words"]
    assert not records["blind"]["same_weights"]
    assert records["blind"]["seconds"] == 0
    with pytest.raises(SystemExit):
        train.main(["blind", "--confirm", "--card"])
