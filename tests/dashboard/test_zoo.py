"""The networks of the zoo under their names, in commands, pages and study files."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import data
from core.errors import ForetellError
from dashboard.explore.source import OWN, list_others, list_sources
from dashboard.shared import cache
from dashboard.shared.cards import describe_card
from data.scenes.shapes import CATEGORIES
from data.scenes.zoo.store import PREFIX, read_card
from study.network.sources import open_classifier
from study.workspace.workspace import ROOT

NAMES = [name for name in data.CLASSIFIERS if name.startswith(PREFIX)]
STUDIES = ROOT / "data" / "studies"


@pytest.mark.parametrize("name", NAMES)
def test_a_network_is_opened_by_its_name_and_explained(name: str) -> None:
    """Catches a member whose file lacks what the loader reads, and one whose last layer no method finds.

    A gradient passes through every network, and its evidence is not zero.
    """
    from core.attribution import METHODS

    network = open_classifier(name, Path.cwd(), "cpu")
    assert (network.name, network.categories) == (name, tuple(CATEGORIES))
    assert network.mean_colour == open_classifier("scenes", Path.cwd(), "cpu").mean_colour
    x = network.fill("mean")
    x[:, 20:60, 30:70] += 1
    assert METHODS["gradient"](network, x[None], [3]).map.abs().max() > 0
    assert METHODS["grad_cam"](network, x[None], [3]).map.shape == (1, 96, 96)


def test_networks_have_fingerprints_of_their_own() -> None:
    """Catches provenance that does not tell one network from another."""
    found = [open_classifier(name, Path.cwd(), "cpu").fingerprint for name in data.CLASSIFIERS]
    assert len(set(found)) == len(found)


def test_an_unknown_member_is_refused_with_the_others(tmp_path: Path) -> None:
    """Catches a name that is searched among torchvision's, and one for which a package would be installed."""
    with pytest.raises(ForetellError, match="no network 'scenes:blnd'") as refused:
        open_classifier("scenes:blnd", tmp_path)
    message = str(refused.value)
    assert "\n" not in message
    assert all(f"{name}," in message or f"{name}." in message for name in NAMES)


def test_the_whole_image_is_refused_by_name(tmp_path: Path) -> None:
    """Catches ``resize = "whole"`` that searched a built-in network among torchvision's."""
    with pytest.raises(ForetellError, match="transforms of its own"):
        open_classifier("scenes:blind", tmp_path, whole=True)


def test_pages_offer_the_networks_with_the_scenes(workspace: Path) -> None:
    """Catches a network that Explore lists without any image that it was made for."""
    assert set(NAMES) < set(cache.list_models())
    assert list_sources("scenes:blind")[:2] == ["Adversarial", "Standard"]
    assert cache.load_classifier("scenes:blind").name == "scenes:blind"


def test_the_networks_of_the_bars_are_offered_with_the_bars(workspace: Path) -> None:
    """Catches bars for a network of the scenes, and the reverse; own sets are offered for every network."""
    assert {"bars", "bars:belief"} < set(cache.list_models())
    assert list_sources("bars:belief") == ["Bars", *cache.list_image_sets(), OWN]
    assert "Bars" not in list_sources("scenes:blind")
    assert list_others("bars") == ["bars:belief"]
    assert not {"bars", "bars:belief"} & set(list_others("scenes"))
    source, _ = cache.find_image_source("bars")
    assert (source.set, source.settings["size"]) == ("bars", cache.SCENE_COUNT)


@pytest.mark.parametrize("name", NAMES)
def test_a_card_names_the_difference_and_every_figure_has_an_interval(name: str) -> None:
    """Catches a card without its built-in comparison, and an interval that does not contain its estimate."""
    card = read_card(name)
    text = describe_card(card, name)
    assert card["name"] == name
    assert card["difference"] in text
    for effects in card["effects"].values():
        for one in effects.values():
            assert all(low <= mean <= high for mean, low, high in one.values())
    mean = card["effects"]["network"]["do(context)"]["true_class"][0]
    assert f"| do(context) | the true class | {mean:.3f} (".replace("-", "−") in text


def test_the_two_studies_differ_in_nothing_but_the_network() -> None:
    """Catches an edit of one of the two files."""
    scenes, blind = (
        tomllib.loads((STUDIES / f"two-ais-{name}.toml").read_text(encoding="utf-8")) for name in ("scenes", "blind")
    )
    assert (scenes.pop("classifier"), blind.pop("classifier")) == ({"model": "scenes"}, {"model": "scenes:blind"})
    assert scenes["study"].pop("name") != blind["study"].pop("name")
    assert scenes == blind
