"""The question modes: its table and drawings against what the core finds in the same images."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.attribution.places.activations import activation_and_gradient
from core.distillation.modes import ModeEvidence, find_modes
from core.errors import ForetellError
from inquiry.layers import QUESTIONS
from inquiry.layers.explanations.decision_modes import ReadModes, compute_mean_heatmap, draw_modes
from inquiry.layers.inspection import LayerInspection, LayerQuery
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net


@pytest.fixture(scope="module")
def inspected() -> LayerInspection:
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 128}), None)
    return LayerInspection(scene_net(), images, LayerQuery("modes"), scene_net())


def test_the_modes_are_those_of_the_images_of_the_class(inspected: LayerInspection) -> None:
    """Catches the gradient of another class's logit, features that are no means, and another layer than is named."""
    table = QUESTIONS["modes"](inspected, lambda *_: None, of="fish", count=30)
    network, k = inspected.classifier, inspected.classifier.categories.index("fish")
    predicted = network.logits(inspected.inputs).argmax(1)
    rows = torch.cat([torch.nonzero(predicted == k)[:30, 0], torch.nonzero(predicted != k)[:30, 0]])
    layer = table["layer"].iloc[0]
    assert layer == "features.4"  # after features.5 there are only a mean and one linear layer: one gradient for all
    x, g, logits = activation_and_gradient(network, inspected.inputs[rows], torch.full((len(rows),), k), layer)
    found = find_modes(
        ModeEvidence(
            x.mean((2, 3)).double().numpy(),
            g.sum((2, 3)).double().numpy(),
            logits[:, k].double().numpy(),
            (predicted[rows] == k).numpy(),
        )
    )
    assert table["images"].tolist() == [len(mode.images) for mode in found.modes]
    assert table["images"].sum() == int((predicted == k).sum())
    assert table["share"].sum() == pytest.approx(1)
    read = inspected.kept["modes"]
    assert isinstance(read, ReadModes)
    mode = found.modes[0]
    slow = np.mean([sum(w * x[i, d].numpy() for d, w in enumerate(mode.weights)) for i in mode.images], axis=0)
    np.testing.assert_allclose(compute_mean_heatmap(read, 0).numpy(), slow, rtol=1e-3, atol=1e-4)
    drawn = draw_modes(inspected)
    assert list(drawn) == [f"mode {i}" for i in range(1, len(found.modes) + 1)]
    assert drawn["mode 1"].size == ((min(6, len(mode.images)) + 1) * 132 - 4, 128)


def test_a_class_that_is_never_predicted_is_refused(inspected: LayerInspection) -> None:
    never = LayerInspection(
        inspected.classifier, inspected.images.only([6, 7, 22, 23]), inspected.request, inspected.classifier
    )
    with pytest.raises(ForetellError, match="0 of 4 images are predicted to be balloon: modes need 2"):
        QUESTIONS["modes"](never, lambda *_: None, of="balloon")
