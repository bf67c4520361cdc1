"""Changing a factor of a scene in Explore: the image, its prediction, and its true class and factors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.explore.heatmaps.intervention import intervene
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.source import open_from_set
from dashboard.shared import cache
from data.scenes.generator import render
from data.scenes.splits import scene_seed
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled


@pytest.mark.parametrize(("factor", "value"), [("context", "snow"), ("object", "boat")])
def test_only_the_chosen_factor_is_changed(opened: Any, factor: str, value: str) -> None:
    """Against the generator. Catches another scene, a true class or an object's outline that is out of date, and code
    that opens another image."""
    gallery = gallery_of("scenes", "adversarial")
    seen = ClassifiedImage("scenes", open_from_set(gallery, "adversarial", 9))
    own = {"category": seen.chosen.truth, "context": seen.chosen.context}
    scene = render(scene_seed("adversarial", 0, 9), **own | {"category" if factor == "object" else factor: value})
    changed = intervene(seen, gallery.images, factor, value).chosen
    assert np.array_equal(np.asarray(changed.image), np.asarray(scene.image))
    assert (changed.truth, changed.context) == (scene.label, scene.context)
    assert (changed.mask is None) == (factor == "object")
    if changed.mask is not None:
        assert np.array_equal(changed.mask, scene.mask)
    names: dict[str, Any] = {"Path": Path}
    for line in changed.imports:
        exec(line, names)
    assert np.array_equal(np.asarray(eval(changed.code, names)), np.asarray(scene.image))


def test_a_link_shows_the_networks_own_prediction_of_the_changed_scene(opened: Any) -> None:
    """The printed confidence against one made here; catches that of the image before, and a factor that is not read."""
    app: AppTest = opened(method="Gradient", image="adversarial/9", factor="Context", **{"factor.context": "snow"})
    network, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    p = network.probabilities(network.preprocess(images.factors["context"].do(9, "snow"))[None])[0]
    said = f"predicts {network.categories[int(p.argmax())]} ({float(p.max()):.0%})"
    assert any(said in one.value for one in app.markdown)
    app.selectbox(key="factor.context").set_value(images.contexts[9]).run()
    assert any("has this context already" in one.value for one in settled(app).caption)
