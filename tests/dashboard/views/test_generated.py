"""Generated counterfactuals in Explore: what is drawn and said, and the refusal."""

from __future__ import annotations

import torch
from streamlit.testing.v1 import AppTest
from torch import Tensor

from core.network.classifier import Classifier
from core.robustness.manifold import Manifold, find_on_manifold
from dashboard.explore.heatmaps import generated
from dashboard.shared import cache
from inquiry.counterfactuals.generated import LEAST, describe_generated
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled

COMPONENTS = 8


def learn_components(classifier: Classifier, inputs: Tensor, **_: object) -> tuple[Manifold, object]:
    """A generator that can draw sums of the first inputs, scaled: whatever is one of them is drawn exactly."""
    flat = inputs[:COMPONENTS].flatten(1)
    return Manifold(
        encode=lambda images: torch.linalg.lstsq(flat.T, images.flatten(1).T).solution.T,
        decode=lambda z: (z @ flat).view(-1, *inputs.shape[1:]),
    ), None


def test_a_link_shows_the_nearest_drawn_image_of_this_one(opened, monkeypatch) -> None:
    """The printed sentence against a search made here, with a linear generator in place of the learned one.

    Catches a generator of another set, and a search for another image.
    """
    monkeypatch.setattr(generated, "learn_manifold", learn_components)
    gallery, classifier = gallery_of("scenes", "adversarial"), cache.load_classifier("scenes")
    inputs = torch.stack([classifier.preprocess(gallery.images.open(i)) for i in range(COMPONENTS)])
    found = find_on_manifold(classifier, learn_components(classifier, inputs)[0], inputs[3])
    app: AppTest = settled(opened(method="Gradient", image="adversarial/3", generated="true").run())
    assert describe_generated(found, list(classifier.categories)) in [
        one.value.replace("\\", "") for one in app.markdown
    ]


def test_a_generator_of_too_few_images_is_refused_in_one_sentence(opened) -> None:
    """Catches a traceback, and a page without its other parts."""
    app: AppTest = settled(opened(method="Gradient", image="adversarial/3", generated="true", seed="7").run())
    count = len(gallery_of("scenes", "adversarial").images)
    assert count < LEAST
    (error,) = app.error
    assert error.value.startswith(f"A generator is learned from {LEAST} images or more, and {count} were given")
    assert "Counterfactual" in [one.value for one in app.subheader]
