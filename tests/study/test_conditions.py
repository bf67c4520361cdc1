"""What each condition shows, from the registry, against the table of the two factors."""

import pytest

from core.errors import ForetellError
from study.bundle import Example, Trial, TrialAssets
from study.conditions import CONDITIONS
from study.screens import assets, planned, shown_hash

EXAMPLES = tuple(
    Example(category=category, source="pool", image=f"{category}{k}", map=f"{category}{k}-map")
    for category in ("fish", "boat")
    for k in (1, 2)
)
TRIAL = Trial(
    id="t",
    trial_type="std_incorrect",
    target="fish",
    alternative="boat",
    truth="boat",
    options=("boat", "fish"),
    ai_probability=0.6,
    source="s",
    assets=TrialAssets(target="target", target_map="target-map", examples=EXAMPLES),
    teaching={},
    saliency={},
)

PLAIN = {"boat": ("boat1", "boat2"), "fish": ("fish1", "fish2")}
MAPPED = {"boat": ("boat1-map", "boat2-map"), "fish": ("fish1-map", "fish2-map")}
NOTHING: dict[str, tuple[str, ...]] = {"boat": (), "fish": ()}


@pytest.mark.parametrize(
    ("name", "saliency", "examples", "target_map", "shown"),
    [
        ("none", False, False, None, NOTHING),
        ("saliency", True, False, "target-map", NOTHING),
        ("examples", False, True, None, PLAIN),
        ("both", True, True, "target-map", MAPPED),
    ],
)
def test_slots(name: str, saliency: bool, examples: bool, target_map: str | None, shown: object) -> None:
    condition = CONDITIONS[name]
    assert (condition.name, condition.shows_saliency, condition.shows_examples) == (name, saliency, examples)
    what = condition.shown(TRIAL)
    assert (what.target, what.target_map, what.examples) == ("target", target_map, shown)


@pytest.mark.parametrize("name", list(CONDITIONS))
def test_factors_say_what_is_shown(name: str) -> None:
    """Runs over the registry: a new condition cannot declare a factor it does not show, or the reverse."""
    condition = CONDITIONS[name]
    what = condition.shown(TRIAL)
    maps = {"target-map", *(e.map for e in EXAMPLES)}
    pictures = {what.target, what.target_map, *what.examples["boat"], *what.examples["fish"]} - {None}
    assert condition.name == name
    assert set(what.examples) == set(TRIAL.options)
    assert bool(pictures & maps) == condition.shows_saliency
    assert any(what.examples.values()) == condition.shows_examples


def test_an_unknown_condition_is_named_with_its_neighbour() -> None:
    with pytest.raises(ForetellError, match="Did you mean 'saliency'"):
        CONDITIONS["salency"]


def test_sides_swap_the_screen_and_change_its_hash() -> None:
    straight = planned("main", TRIAL, CONDITIONS["both"], "a")
    flipped = planned("main", TRIAL, CONDITIONS["both"], "b")
    assert straight.screen["left"]["name"] == "boat"
    assert flipped.screen["left"] == straight.screen["right"]
    assert straight.shown_sha256 != flipped.shown_sha256


def test_shown_hash_covers_every_asset_in_its_place() -> None:
    """The bytes the hash stands for can be listed by hand from the screen."""
    screen = planned("main", TRIAL, CONDITIONS["both"], "a").screen
    assert assets(screen) == ["target", "target-map", "boat1-map", "boat2-map", "fish1-map", "fish2-map"]
    # printf 'target\ntarget-map\nboat1-map\nboat2-map\nfish1-map\nfish2-map' | sha256sum
    assert shown_hash(screen) == "26f8c1b94e37a91935b08327471a7a4a24b41fe2591f220ed77d11da67f15514"
