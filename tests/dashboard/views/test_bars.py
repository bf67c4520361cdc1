"""Explore with the networks of the bars, which are offered with images of their own."""

from __future__ import annotations

import pytest

from dashboard.shared import cache
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import FEW, settled


@pytest.mark.parametrize("name", ["bars", "bars:belief"])
def test_bars_are_classified_and_explained(opened, name: str) -> None:
    """Against the network's own predictions. Catches bars that are read as scenes, and a page without any image."""
    app = opened(classifier=name, method="Gradient", image="bars/5")
    assert not app.error, [error.value for error in app.error]
    gallery = gallery_of(name, "bars")
    assert len(gallery.images) == FEW
    truth, predicted, _ = gallery.describe_prediction(5)
    assert app.header[0].value.startswith(f"The AI predicts {predicted}")
    network = cache.load_classifier(name)
    assert (
        predicted == network.categories[int(network.logits(network.preprocess(gallery.images.open(5))[None]).argmax())]
    )
    assert truth == "vertical"


def test_a_change_of_the_network_changes_the_images(opened) -> None:
    """Catches scenes that stay chosen for a network of the bars, and bars that stay for one of the scenes."""
    app = opened(method="Gradient")
    for name, of in (("bars", "Bars"), ("scenes", "Adversarial")):
        box = next(box for box in app.selectbox if box.key == "classifier")
        assert {"bars", "bars:belief"} <= set(box.options)
        settled(box.set_value(name).run())
        assert not app.error, [error.value for error in app.error]
        assert app.session_state["source"] == of
        assert app.header[0].value.startswith("The AI predicts ")
        assert any(bar in app.header[0].value for bar in ("horizontal", "vertical")) == (name == "bars")
