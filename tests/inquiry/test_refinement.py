"""Refinement: planted noise is removed, a rotation changes nothing, and accuracies are compared image by image."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.errors import ForetellError
from core.layers.consistency import refine
from core.layers.probe import linear_probe
from inquiry.layers.record import record_of
from inquiry.layers.representations import refinement as module
from inquiry.layers.representations.refinement import refinement

N, CLASSES, PLACES = 240, 4, 4
OWNER = torch.arange(N).repeat_interleave(PLACES)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def clean() -> tuple[torch.Tensor, torch.Tensor]:
    """Features (N * PLACES, 6) of a network that nearly tells the labels (N,), and those labels."""
    labels = torch.arange(N) % CLASSES
    features = 1.2 * torch.nn.functional.one_hot(labels, 6).float() + 0.5 * normal(N, 6, seed=1)
    return features[OWNER] + 0.3 * normal(N * PLACES, 6, seed=2), labels


def ask(monkeypatch, layer: torch.Tensor, other: torch.Tensor, labels: torch.Tensor):
    """Ask about two planted layers."""
    monkeypatch.setattr(module, "list_pairs", lambda _: [("own", "compared")])
    monkeypatch.setattr(module, "read_pair", lambda *_: (layer, other, OWNER, (2, 2)))
    images = SimpleNamespace(labels=labels.numpy())
    inspected = SimpleNamespace(images=images, generator=lambda: torch.Generator().manual_seed(0))
    return refinement(inspected, lambda *_: None).set_index("features")


def test_planted_noise_is_removed_and_the_accuracy_is_that_of_the_clean_network(clean, monkeypatch):
    """Planted: forty channels of noise, each image's own, next to the clean ones turned.

    Expected: the clean features' own probe. Catches features of the wrong layer, or with the noise.
    """
    features, labels = clean
    rotation = torch.linalg.qr(normal(6, 6, seed=3))[0]
    noise = 3 * normal(N, 40, seed=4)[OWNER]
    table = ask(monkeypatch, torch.cat([features @ rotation, noise], 1), features, labels)
    alone = table["accuracy"]["other layer"]
    assert alone == pytest.approx(linear_probe(features.reshape(N, PLACES, 6).mean(1), labels).accuracy, abs=0.04)
    assert table["accuracy"]["own"] < alone - 0.05
    for name in ("order 0", "orders 0 to 1", "orders 0 to 2"):
        assert table["accuracy"][name] == pytest.approx(alone, abs=0.03)
        assert table["gain_low"][name] > 0
        assert table["p_value"][name] < 0.05


def test_a_rotated_layer_is_refined_to_itself(clean, monkeypatch):
    """Catches a refinement that loses what both layers have: nothing is inconsistent here."""
    features, labels = clean
    turned = features @ torch.linalg.qr(normal(6, 6, seed=3))[0]
    table = ask(monkeypatch, turned, features, labels)
    assert table["gain"].abs().max() < 0.02
    assert table["p_value"].min() > 0.2
    for found in refine(turned, features, images=OWNER)[0]:
        torch.testing.assert_close(found.float(), turned, atol=0.02, rtol=0)


def test_a_label_of_few_images_is_read_in_fewer_folds(clean, monkeypatch):
    """Six images of one label, of which a half has about three: catches five folds, which need five of each."""
    features, labels = clean
    rare = labels.clone()
    rare[torch.nonzero(rare == 3)[6:, 0]] = 0
    assert ask(monkeypatch, features, features, rare)["accuracy"]["own"] > 0.6


def test_no_image_is_refined_by_a_mapping_that_has_seen_it():
    """Random features of 16 images, copied to 40 places: by heart, every one could be reconstructed."""
    owner = torch.arange(16).repeat_interleave(40)
    x, y = normal(16, 30)[owner], normal(16, 5, seed=1)[owner]
    left = (refine(y, x, images=owner, orders=1)[0][-1] - y).square().mean() / y.var()
    assert float(left) > 0.8


def test_accuracies_are_compared_image_by_image(clean, monkeypatch):
    """Expected: counts by hand. Catches a gain of the other sign, and one against other features than the own."""
    features, labels = clean
    table = ask(monkeypatch, 3 * normal(N * PLACES, 6, seed=5), features, labels)
    assert np.isnan(table["gain"]["own"])
    for name in ("order 0", "other layer"):
        assert table["gain"][name] == pytest.approx(table["accuracy"][name] - table["accuracy"]["own"])
    assert table["gain_low"]["other layer"] > 0
    assert table["p_value"]["other layer"] < 1e-6


def test_a_grid_without_places_is_refused():
    with pytest.raises(ForetellError, match="places=0: the grid has 1 or more places"):
        refinement(SimpleNamespace(), lambda *_: None, places=0)


def test_the_figure_shows_each_accuracy_with_its_interval(clean, monkeypatch):
    """Catches bars of another kind of features, and limits drawn as lengths."""
    features, labels = clean
    table = ask(monkeypatch, features, features, labels).reset_index()
    bars = record_of("refinement").figure(table).data
    assert [bar.name for bar in bars] == table["features"].tolist()
    for bar, (_, row) in zip(bars, table.iterrows(), strict=True):
        assert (list(bar.x), list(bar.y)) == (["own from compared"], [row["accuracy"]])
        assert bar.y[0] + bar.error_y.array[0] == pytest.approx(row["high"])
        assert bar.y[0] - bar.error_y.arrayminus[0] == pytest.approx(row["low"])
