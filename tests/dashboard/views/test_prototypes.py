"""Prototypes in Explore: for networks that have them, of the class that is chosen."""

from __future__ import annotations

from core.concepts.prototypes import find_matches
from dashboard.shared import cache
from inquiry.counterfactuals.prototypes import describe_matches
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled

NETWORK = "scenes:prototypes"


def test_the_prototypes_of_the_chosen_class_are_described(opened) -> None:
    """Against the matches found here. Catches those of the prediction, and another image's."""
    classifier = cache.load_classifier(NETWORK)
    inputs = classifier.preprocess(gallery_of("scenes", "adversarial").images.open(9))
    k = classifier.categories.index("boat")
    expected = describe_matches(
        find_matches(classifier, inputs, k), "boat", float(classifier.logits(inputs[None])[0, k])
    )
    app = settled(opened(method="Gradient", image="adversarial/9", classifier=NETWORK, prototypes="boat").run())
    assert not app.error
    assert expected in [one.value for one in app.markdown]
