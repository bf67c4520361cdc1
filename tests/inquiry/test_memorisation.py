"""The question memorisation: its table against the record itself, its warnings, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.robustness.box import find_pixel_range
from core.shares import share_of
from core.training.modifications import Limits, modify_examples
from core.training.record import TrainingSettings, record_training
from core.types import silent
from data.scenes.shapes import CATEGORIES
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.training.memorisation import divide_images, warn_of
from study.network.sources import open_set
from study.plan.config import ImageSource

SIDE = 8


@pytest.fixture(scope="module")
def inspected() -> LayerInspection:
    """A small perceptron of shrunken scenes."""

    def transforms(image) -> Tensor:
        return torch.from_numpy(np.array(image.resize((SIDE, SIDE)))).permute(2, 0, 1).float() / 255

    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE**2, 32), nn.ReLU(), nn.Linear(32, len(CATEGORIES)))
    network = Classifier(module, transforms, list(CATEGORIES), name="small")
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 63}), None)
    return LayerInspection(network, images, LayerQuery("memorisation"), network)


def test_the_table_is_the_record_of_each_kind_from_the_same_weights(inspected, tmp_path) -> None:
    """Catches a share of the wrong images, a column that is another one's, and a kind that gets another's record."""
    kept = LayerInspection(inspected.classifier, inspected.images, inspected.request, inspected.classifier, tmp_path)
    table = QUESTIONS["memorisation"](kept, silent, kinds="random_labels, gaussian", epochs=2, radius=2, cut=1.5)
    training, held_out, classes = divide_images(inspected)
    limits = Limits(classes, *find_pixel_range(inspected.classifier), 0.5)
    settings = TrainingSettings(epochs=2, radius=2 / 255, cut=1.5)
    for kind in ("random_labels", "gaussian"):
        own = modify_examples(kind, training, held_out, limits, inspected.generator())
        moments = record_training(inspected.classifier, *own, settings, generator=inspected.generator())
        rows = table[table["kind"] == kind]
        assert rows["epoch"].tolist() == [0, 1, 2]
        for (_, row), moment in zip(rows.iterrows(), moments, strict=True):
            for name in ("training", "training_true", "held_out", "critical"):
                expected = share_of(getattr(moment, name), 32 if name.startswith("training") else 31)
                assert row[[name, f"{name}_low", f"{name}_high"]].tolist() == pytest.approx(list(expected))
            assert (row["sensitivity"], row["gini"]) == pytest.approx((moment.sensitivity, moment.gini))
            coarse = [moment.coarse / 31, moment.fine / 31] if kind == "random_labels" else [None, None]
            assert [None if np.isnan(row[part]) else row[part] for part in ("coarse", "fine")] == coarse
    assert set(table["chance"]) == {1 / 16}
    first = table[table["epoch"] == 0]
    assert first["critical"].nunique() == 2 or first["sensitivity"].nunique() == 2
    assert list(tmp_path.iterdir()) == []


def test_half_of_each_class_is_held_out(inspected) -> None:
    """Catches images that are trained on and held out, and labels that belong to other images."""
    training, held_out, classes = divide_images(inspected)
    assert classes.tolist() == list(range(16))
    assert training.labels.bincount().tolist() == [2] * 16
    assert held_out.labels.bincount().tolist() == [2] * 15 + [1]
    every = {tuple(image.flatten().tolist()): int(label) for one in (training, held_out)
             for image, label in zip(one.inputs, one.labels, strict=True)}  # fmt: skip
    known = torch.from_numpy(inspected.classes)
    assert every == {
        tuple(image.flatten().tolist()): int(label) for image, label in zip(inspected.inputs, known, strict=True)
    }
    assert len(every) == 63


def test_a_training_that_is_too_short_is_reported(inspected) -> None:
    table = QUESTIONS["memorisation"](inspected, silent, kinds="true", epochs=1)
    (note,) = table["note"].dropna()
    share = table["training"].iloc[-1]
    assert note.startswith(f"Data true: after 1 epochs {share:.0%} of the training images")
    assert warn_of("true", 0.95, 3) is None


def test_what_cannot_be_recorded_is_refused(inspected) -> None:
    """Catches a kind that is ignored, a radius beyond white, and images from which nothing can be learned."""
    ask = QUESTIONS["memorisation"]
    with pytest.raises(ForetellError, match=r"'noise' is no kind of data. There are: true, corrupted"):
        ask(inspected, silent, kinds="true,noise")
    with pytest.raises(ForetellError, match="radius=300: a radius is more than 0 and at most 255 grey levels"):
        ask(inspected, silent, radius=300)
    with pytest.raises(ForetellError, match="epochs=0"):
        ask(inspected, silent, epochs=0)
    network, images = inspected.classifier, inspected.images
    few = LayerInspection(network, images.only(range(9)), inspected.request, network)
    with pytest.raises(ForetellError, match=r"9 images have a label that is a class of small.*give 20 or more"):
        ask(few, silent)
    fish = np.flatnonzero(images.labels == 0).tolist()
    alone = LayerInspection(network, images.only(fish * 5), inspected.request, network)
    with pytest.raises(ForetellError, match="All images have the same label"):
        ask(alone, silent)
