"""Every question to a network on an accelerator: what it refuses, and results that differ from the CPU's, are red.

On a GPU where there is one, else on a simulated one (`tests.core.accelerator`), in a process of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import data
from core.concepts.prototypes import find_matches
from core.concepts.tcav import tcav
from core.network.classifier import Classifier
from core.robustness.manifold import Manifold, find_on_manifold
from core.sources import load
from core.units import PARAMETERISATIONS
from core.units.maximise import Parameterisation
from core.units.unit import Unit
from data.types import ImageSet
from inquiry.concepts.concepts import ConceptQuery, concepts
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.question_files import draw_result
from inquiry.layers.record import record_of
from inquiry.units.exemplars import exemplars, of_set
from inquiry.units.sampled_units import SampledQuery, sample
from inquiry.units.units import VisualisationSettings
from study.network.sources import DATA, open_set
from study.plan.config import ImageSource
from tests.core.accelerator import DEVICE, open_accelerator, run_in_own_process
from tests.core.scenes import scene_net
from tests.inquiry.test_sampled_units import NETWORK

SIDE = 24
CATEGORIES = ("boat", "bird", "car")
SETTINGS = {"split": "standard", "size": 320}
FEW: dict[str, dict[str, Any]] = {
    "probes": {"hidden": 2},
    "attacks": {"radii": "8", "names": "pgd"},
    "margins": {"images": 3, "directions": 2},
    "frequencies": {"radii": "4"},
    "bands": {"images": 3, "bands": 3, "steps": 4},
    "evidence": {"methods": "input_x_gradient"},
    "modes": {"count": 6},
    "x_features": {"features": 1},
    "parts": {"channels": 2, "sweeps": 3},
    "explainer": {"steps": 4},
    "rules": {"leaves": 4, "depth": 2},
    "memorisation": {"epochs": 2, "kinds": "true"},
    "attributes": {"queries": "crafted", "outputs": "prob", "hidden": 4, "epochs": 1},
    "decomposition": {"filters": "4,3", "images": 12, "side": 12, "size": 3, "epochs": 2},
    "recognition": {"filters": "4", "images": 45, "learned": 12, "side": 12, "size": 3, "epochs": 1, "words": 8},
}
"""Parameters with which a question takes little time; one that is not here is asked with its own."""


@pytest.fixture
def device() -> Iterator[str]:
    with open_accelerator() as name:
        yield name


def transforms(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image.resize((SIDE, SIDE)))).permute(2, 0, 1).float() / 127.5 - 1


@cache
def few_scenes() -> ImageSet:
    """Scenes of three categories, in contexts of which each is there often enough to be learned."""
    images = open_set(ImageSource.model_validate({"set": "scenes", **SETTINGS}), None)
    chosen = [row for row, label in enumerate(images.labels) if images.categories[label] in CATEGORIES]
    assert images.contexts is not None
    counts = Counter(images.contexts[row] for row in chosen)
    return images.only([row for row in chosen if counts[images.contexts[row]] >= 6])


@cache
def small_network(device: str, seed: int = 0) -> Classifier:
    """Random convolutions whose classes are predicted equally often."""
    draws = torch.Generator().manual_seed(seed)
    features = nn.Sequential(nn.Conv2d(3, 6, 5, 2), nn.ReLU(), nn.Conv2d(6, 8, 3), nn.ReLU())
    network = nn.Sequential()
    for name, part in {
        "features": features,
        "pool": nn.AdaptiveAvgPool2d(1),
        "flatten": nn.Flatten(),
        "head": nn.Linear(8, len(CATEGORIES)),
    }.items():
        network.add_module(name, part)
    with torch.no_grad():
        for weights in network.parameters():
            weights.copy_(torch.randn(weights.shape, generator=draws) * (0.3 if weights.ndim > 1 else 0.1))
        images = few_scenes()
        logits = network(torch.stack([transforms(images.open(i)) for i in range(len(images))]))
        network.head.bias -= logits.mean(0)
        network.head.weight /= logits.std()
        network.head.bias /= logits.std()
    return Classifier(network, transforms, CATEGORIES, name="small", device=device)


def test_everything_in_a_process_of_its_own() -> None:
    """Every test below, which are skipped here."""
    assert run_in_own_process(__file__) > len(QUESTIONS), "they ran there"


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_the_cpus_table(device: str, question: str) -> None:
    """Catches tensors and draws on two devices, arrays made of a device's tensors, and results of another network."""
    expected, table = (ask(question, on) for on in ("cpu", device))
    assert len(table)
    pd.testing.assert_frame_equal(table, expected, rtol=1e-3, atol=1e-4)


def ask(question: str, device: str) -> pd.DataFrame:
    """Ask a network of the device, and draw the result."""
    layers = ("features.2",) if record_of(question).layered or record_of(question).compares else ()
    other_layers = ("features.3",) if record_of(question).compares else ()
    classifier = scene_net(device) if question == "attributes" else small_network(device)
    compared = small_network(device, 1) if record_of(question).compares else classifier
    request = LayerQuery(question, settings=SETTINGS, layers=layers, other_layers=other_layers)
    inspected = LayerInspection(classifier, few_scenes(), request, compared)
    table: pd.DataFrame = QUESTIONS[question](inspected, lambda *_: None, **FEW.get(question, {}))
    assert all(np.array(image).std() > 0 for image in draw_result(inspected).values())
    return table


def read_inputs(count: int) -> Tensor:
    """The first inputs (count, 3, SIDE, SIDE)."""
    images = few_scenes()
    return torch.stack([transforms(images.open(i)) for i in range(count)])


@pytest.mark.parametrize("how", PARAMETERISATIONS)
def test_an_image_made_for_a_unit_is_the_cpus(device: str, how: Parameterisation) -> None:
    """Catches starts, moves, spectra and colours on two devices, and a gradient that has no way to the image."""
    if how == "maco" and device == DEVICE:
        pytest.skip("the simulated device has no conjugate views of complex tensors")
    images = of_set(few_scenes().only(range(8)))
    settings = VisualisationSettings(how, starts=1, steps=4)
    expected, made = (settings.make(small_network(on), Unit(2, "features.2"), images=images) for on in ("cpu", device))
    torch.testing.assert_close(made.trace, expected.trace, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(made.images, expected.images, rtol=1e-3, atol=1e-3)
    assert float(made.trace[0, -1]) > float(made.trace[0, 0])


def test_exemplars_are_the_cpus(device: str) -> None:
    """Catches places and activations of another device, and the fields and projections of their sheet."""
    images = of_set(few_scenes().only(range(12)))
    expected, others = (
        exemplars(small_network(on), Unit(1, "features.2"), images, count=3).exemplars for on in ("cpu", device)
    )
    assert [(one.id, one.box) for one in others] == [(one.id, one.box) for one in expected]


def test_a_units_samples_are_the_cpus(device: str, tmp_path: Path) -> None:
    """Catches the weights of a machine left on the device, where its Gibbs chains draw on the CPU."""
    (tmp_path / "network.py").write_text(NETWORK, encoding="utf-8")
    query = SampledQuery("network", "upper:0", starts=1, steps=3)
    sampled = [
        sample(load(f"{tmp_path / 'network.py'}:build", device=torch.device(on)), query) for on in ("cpu", device)
    ]
    torch.testing.assert_close(sampled[1].drawn, sampled[0].drawn, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(sampled[1].maximised, sampled[0].maximised, rtol=1e-3, atol=1e-3)


def test_tcav_is_the_cpus(device: str) -> None:
    """Catches activations and gradients of a layer on two devices."""
    inputs = read_inputs(36)
    expected, tested = (
        tcav(small_network(on), ["features.2"], inputs[:8], inputs[8:30], inputs[30:], 1, runs=2, concepts=4)[0]
        for on in ("cpu", device)
    )
    torch.testing.assert_close(tested.scores, expected.scores)
    assert tested.sensitivity == pytest.approx(expected.sensitivity, rel=1e-3)


def test_effects_of_concepts_are_the_cpus(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches representations from which a concept is removed on two devices."""
    monkeypatch.setattr("inquiry.concepts.concepts.INTERVENED", 12)
    context = Counter(few_scenes().contexts or ()).most_common(1)[0][0]
    about = {"concepts": (f"context={context}",), "settings": SETTINGS}
    query = ConceptQuery("small", "car", layers=("features.2",), count=8, runs=2, **about)
    expected, table = (concepts(small_network(on), query, few_scenes()).table for on in ("cpu", device))
    pd.testing.assert_frame_equal(table, expected, rtol=1e-3, atol=1e-3)


def test_a_counterfactual_of_a_generator_is_the_cpus(device: str) -> None:
    """Catches the code, the generator and the network's gradient on two devices."""
    inputs = read_inputs(30)
    axes = torch.linalg.svd(inputs.flatten(1), full_matrices=False).Vh
    manifold = Manifold(
        lambda images: images.flatten(1) @ axes.T, lambda code: (code @ axes).view(-1, *inputs.shape[1:])
    )
    expected, drawn = (find_on_manifold(small_network(on), manifold, inputs[0]) for on in ("cpu", device))
    assert drawn.new == expected.new
    torch.testing.assert_close(drawn.image, expected.image, rtol=1e-3, atol=1e-3)


def test_matches_of_prototypes_are_the_cpus(device: str) -> None:
    """Catches similarities and weights left on the device."""
    image = few_scenes().open(0)
    found_by = {}
    for on in ("cpu", device):
        classifier = load(str(DATA / data.CLASSIFIERS["scenes:prototypes"]), device=torch.device(on))
        found_by[on] = find_matches(classifier, classifier.preprocess(image), 3)
    for one, match in zip(found_by["cpu"], found_by[device], strict=True):
        assert (match.prototype, match.row, match.column) == (one.prototype, one.row, one.column)
        assert match.contribution == pytest.approx(one.contribution, rel=1e-3)
