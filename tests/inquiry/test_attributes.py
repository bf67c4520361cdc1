"""The question attributes: a held-out relative is recovered, and other networks are refused or called unlike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import silent
from data.scenes.relatives import example
from data.scenes.relatives.networks import shrink
from data.scenes.relatives.outputs import load
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.training.attribute_queries import ask_network
from inquiry.layers.training.attributes import RELATIVES
from study.network.sources import open_classifier, open_set
from study.plan.config import ImageSource

ROOT = Path(__file__).parents[3]


def inspect(network: Classifier) -> LayerInspection:
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 20}), None)
    return LayerInspection(network, images, LayerQuery("attributes"), network)


@pytest.fixture(scope="module")
def network() -> Classifier:
    """The relative whose predictions are not among those of the others."""
    return Classifier(example.build(), example.transforms, example.CATEGORIES, name="example")


@pytest.fixture(scope="module")
def table(network) -> pd.DataFrame:
    return QUESTIONS["attributes"](inspect(network), silent)


def test_a_held_out_relative_is_recovered(table) -> None:
    """Catches predictions about another network, and attributes or values that are mixed up.

    Expected: the attributes by which the script trained it, where the metamodels are certain.
    """
    own = table[(table["output"] == "prob") & (table["probability"] > 0.9)].set_index("attribute")
    known = example.read_card()["example"]
    assert {"activation", "pooling", "images", "contexts"} <= set(own.index)
    assert own["predicted"].to_dict() == {name: known[name] for name in own.index}
    assert table["p_like"].iloc[0] > 0.05
    assert not any("unlike" in note for note in table["note"].dropna())


def test_probabilities_disclose_more_than_one_class(table) -> None:
    """Oh et al. 2018, table 2: prob above ranking, above bottom-1 and top-1, all above chance.

    Catches outputs that are exchanged.
    """
    every = table[table["attribute"] == "all"].set_index("output")
    assert list(every.index) == ["prob", "ranking", "bottom-1", "top-1"]
    assert every.loc["prob", "low"] > every.loc["ranking", "high"]
    for one in ("bottom-1", "top-1"):
        assert every.loc["ranking", "low"] > every.loc[one, "high"]
        assert every.loc[one, "low"] > every.loc[one, "chance"]
    means = table[table["attribute"] != "all"].groupby("output")["accuracy"].mean()
    assert every["accuracy"].to_dict() == pytest.approx(means.to_dict())


def test_chance_and_notes_are_those_of_the_rows(table) -> None:
    """Chance is the most common value's share. Catches a note that names attributes which are disclosed."""
    known = load()
    for a, name in enumerate(known.attributes):
        rows = table[table["attribute"] == name]
        assert set(rows["chance"]) == {max(np.mean(known.values[:, a] == k) for k in range(3))}
    for output, own in table.groupby("output"):
        hidden = own[(own["attribute"] != "all") & (own["low"] <= own["chance"])]["attribute"].tolist()
        note = own["note"].dropna().tolist()
        assert note == ([f"From {output} no better than by chance: {', '.join(hidden)}."] if hidden else [])


def test_the_network_is_asked_the_images_of_the_relatives(network) -> None:
    """Against the network itself on the scenes as the training script shrinks them, without any transforms."""
    known = load()
    pixels = torch.stack([torch.from_numpy(np.array(known.open(k))).permute(2, 0, 1) for k in range(known.count)])
    expected = example.build()(shrink(pixels)).log_softmax(1)
    asked = ask_network(network, known)
    torch.testing.assert_close(asked.log_p, expected.clamp(min=-12), rtol=1e-3, atol=1e-3)
    assert torch.equal(asked.order[:, 0], expected.argmax(1))
    order = [*range(8, 16), *range(8)]
    turned = torch.nn.Sequential(example.build(), torch.nn.Linear(16, 16, bias=False)).requires_grad_(False)
    turned[1].weight.copy_(torch.eye(16)[order])
    renamed = [example.CATEGORIES[k] for k in order]
    other = ask_network(Classifier(turned, example.transforms, renamed, name="turned"), known)
    torch.testing.assert_close(other.log_p, asked.log_p, rtol=1e-3, atol=1e-3)


def test_a_network_of_another_kind_is_called_unlike() -> None:
    """Catches a silent prediction about a network that the metamodels say nothing of."""
    found = QUESTIONS["attributes"](inspect(open_classifier("scenes", ROOT)), silent, outputs="top-1,prob", epochs=1)
    assert found["output"].drop_duplicates().tolist() == ["prob", "top-1"]
    notes = found["note"].dropna().tolist()
    assert notes[0].startswith("scenes is unlike the relatives: its predictions are 3.")
    assert "400 of 400 relatives are nearer to their nearest (p = 0.002)" in notes[0]
    assert sum("unlike" in note for note in notes) == 1


def test_an_unseen_value_is_told_next_to_the_other_columns(network) -> None:
    """Catches columns that are lost or of another row, and a silent reading of crafted images by other parts."""
    ask = QUESTIONS["attributes"]
    table = ask(inspect(network), silent, outputs="prob", unseen="layers").set_index("attribute")
    assert table.loc["layers", ["unseen", "at_random", "kept"]].isna().all()
    others = table.drop(index=["all", "layers"])
    assert table.loc["all", "unseen"] == pytest.approx(others["unseen"].mean())
    assert table.loc["all", "change_high"] < 0
    assert (table["unseen"] - table["at_random"]).dropna().to_dict() == pytest.approx(
        table["change"].dropna().to_dict()
    )
    assert 0.5 < table.loc["all", "kept"] < 1
    assert "unseen" not in ask(inspect(network), silent, outputs="prob", epochs=1)
    with pytest.raises(ForetellError, match="unseen='layers' trains metamodels on other parts"):
        ask(inspect(network), silent, queries="single", unseen="layers")


def test_what_cannot_be_asked_is_refused(network) -> None:
    ask = QUESTIONS["attributes"]
    with pytest.raises(ForetellError, match=r"'label' is no kind of output. There are: prob, ranking, bottom-1, top-1"):
        ask(inspect(network), silent, outputs="prob,label")
    with pytest.raises(ForetellError, match="collection of relatives"):
        ask(inspect(network), silent, relatives="photographs")
    with pytest.raises(ForetellError, match="epochs=0"):
        ask(inspect(network), silent, epochs=0)
    renamed = Classifier(example.build(), example.transforms, ["dog", *example.CATEGORIES[1:]], name="dogs")
    with pytest.raises(ForetellError, match=r"The relatives tell 16 classes apart \(balloon.*and dogs others \(dog"):
        ask_network(renamed, RELATIVES["scenes"]())
