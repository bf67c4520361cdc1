"""The question rules: its table against the tree of the images that it did not hold out, and a planted network."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
import torch

from core.class_names import ClassNames
from core.distillation.tree import fit_tree
from core.errors import ForetellError
from core.layers.layers import means_of
from core.network.classifier import Classifier
from data.types import ImageSet
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net

WHOLE, SOFT, COMMON = "whole tree", "soft tree of depth 2", "most common prediction"


@pytest.fixture(scope="module")
def images() -> ImageSet:
    return open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 150}), None)


def ask(classifier: Classifier, images: ImageSet, layers: tuple[str, ...] = (), **given) -> pd.DataFrame:
    inspected = LayerInspection(classifier, images, LayerQuery("rules", layers=layers), classifier)
    return QUESTIONS["rules"](inspected, lambda *_: None, **given)


class Planted:
    """A network that predicts a class from the context of an image, however the pixels look."""

    names = ClassNames(("wet", "dry"))
    categories = names.categories

    def __init__(self, images: ImageSet) -> None:
        assert images.contexts is not None
        self.wet = torch.tensor([context in ("sea", "beach") for context in images.contexts])

    def probabilities(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.stack([self.wet, ~self.wet], 1).float()


def test_a_planted_rule_is_recovered_with_fidelity_one(images: ImageSet, monkeypatch) -> None:
    monkeypatch.setattr(LayerInspection, "_read", lambda self, classifier: torch.zeros(len(images), 1))
    table = ask(Planted(images), images, depth=2).set_index("rule")  # type: ignore[arg-type]
    assert table.loc[WHOLE, "share"] == table.loc[SOFT, "share"] == 1
    assert table.loc[WHOLE, "low"] < 1
    told = [(rule, said) for rule, said in table["predicts"].items() if isinstance(said, str)]
    (other,) = (rule for rule, said in told if said == "wet" and rule != "context is sea")
    assert other.endswith(("context is beach", "object is umbrella"))  # in these images each goes with the other
    assert [said for _, said in told].count("dry") == 1
    assert table.loc[COMMON, "share"] < 1


def test_rules_about_units_are_judged_on_other_images(images: ImageSet) -> None:
    """By hand. Catches features of another layer, and a fidelity on images of the fit."""
    classifier = scene_net()
    table = ask(classifier, images, ("features.5",), on="units", leaves=6, depth=0).set_index("rule")
    inputs = torch.stack([classifier.preprocess(images.open(i)) for i in range(len(images))])
    x, y = means_of(classifier, inputs, "features.5").double().numpy(), classifier.logits(inputs).argmax(1).numpy()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0)).numpy()
    judged, fitted = order[:50], order[50:]
    tree = fit_tree(x[fitted], y[fitted], leaves=6)
    agreeing = tree.predict(x[judged]) == y[judged]
    assert table.loc[WHOLE, "share"] == pytest.approx(agreeing.mean())
    assert table.loc[WHOLE, ["images", "judged"]].tolist() == [100, 50]
    assert SOFT not in table.index
    leaves = table.dropna(subset=["predicts"])
    assert len(leaves) == 6
    assert leaves["judged"].sum() == 50
    assert all("features.5:" in rule for rule in leaves.index)
    assert (leaves["share"] * leaves["judged"]).sum() == pytest.approx(agreeing.sum())


def test_in_random_contexts_the_context_says_less_of_the_object(images: ImageSet) -> None:
    """As they are, object and context go together and either predicts the network; drawn again they do not."""
    usual, drawn = (
        ask(scene_net(), images, drawn=how, leaves=24, depth=0)["share"].iloc[0]
        for how in ("as they are", "in random contexts")
    )
    assert usual > drawn + 0.2


def test_too_few_images_are_refused(images: ImageSet) -> None:
    with pytest.raises(ForetellError, match="at least 30 images, not 20"):
        ask(scene_net(), images.only(list(range(20))))


def test_a_set_of_which_nothing_is_known_is_refused_with_what_else_to_ask(images: ImageSet) -> None:
    with pytest.raises(ForetellError, match="no objects or contexts are known: choose rules on units"):
        ask(scene_net(), replace(images, factors={}))
