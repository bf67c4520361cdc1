"""What a channel does, on the Units view, against the engine asked directly."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

from core.layers.deletion import Deletion, delete_units
from core.layers.dissection import Dissection, dissect
from core.layers.layers import maps_of
from core.network.decoding import read_batches
from dashboard.explore.units import effects
from dashboard.explore.units.effect_jobs import make_effects_task
from dashboard.shared import cache
from inquiry.layers.units.dissection import compute_lit_share, concept_masks
from study.network.sources import class_of_labels
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled
from tests.dashboard.views.test_units import QUICK, few

__all__ = ["few"]  # the fixture

LAYER, CHANNEL = "features.0.2", 5


@pytest.fixture
def whole(opened):
    """All channels of the layer, asked of the set as the verb asks it."""
    return ask_for_all_channels()


@functools.cache
def ask_for_all_channels() -> tuple[Deletion, Dissection]:
    """Delete every channel of the layer, and compare each with the concepts; once for all tests."""
    classifier, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    inputs = torch.cat(list(read_batches(classifier, images.open, 0, len(images))))
    deletion = delete_units(classifier, inputs, torch.from_numpy(class_of_labels(images, classifier)), LAYER)
    masks, names = concept_masks(images)
    maps = maps_of(classifier, inputs, LAYER)
    return deletion, dissect(maps, masks, names, top=compute_lit_share(maps))


def test_one_channel_alone_is_what_all_together_say(whole) -> None:
    classifier, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    found = make_effects_task(classifier, effects.Unit(CHANNEL, LAYER), images).compute(lambda *_: None)
    np.testing.assert_allclose(found.deletion.drop[0], whole[0].drop[CHANNEL], atol=1e-6)
    np.testing.assert_allclose(found.dissection.agreement[0], whole[1].agreement[CHANNEL], atol=1e-12)
    bars = effects.losses(classifier, found).data[0]
    largest = int(found.deletion.drop[0].abs().argmax())
    assert bars.y[-1] == classifier.categories[int(found.deletion.classes[largest])]
    assert bars.x[-1] == pytest.approx(float(found.deletion.drop[0, largest]))
    assert bars.error_x.array[-1] == pytest.approx(1.96 * float(found.deletion.error[0, largest]))


def test_the_view_shows_both_and_says_what_to_make_of_it(opened, whole) -> None:
    query = {"unit": "A channel", "unit.layer": LAYER, "unit.channel": str(CHANNEL)}
    app = settled(opened(view="Classes and units", **QUICK, **query))
    (table,) = [table.value for table in app.table if "Responds to" in table.value.columns]
    found = whole[1]
    best = found.agreement[CHANNEL].argsort(descending=True)[:3].tolist()
    assert table["Responds to"].tolist() == [found.concepts[k] for k in best]
    detector = "It detects the first" if found.detects[CHANNEL] else "It detects none"
    assert any(caption.value.startswith(detector) for caption in app.caption)


def test_a_class_is_no_channel(opened) -> None:
    app = settled(opened(view="Classes and units", **QUICK))
    assert not any("Effects of the channel" in text.value for text in app.markdown)
