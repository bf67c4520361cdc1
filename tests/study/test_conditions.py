"""What each condition shows, from the registry, against the table of the two factors."""

from math import exp, log

import pytest

from core.errors import ForetellError
from study.bundle import ConditionAssets, Example, Trial, TrialAssets
from study.conditions import CONDITIONS, list_separate_conditions, placebos
from study.participation.screens import assets, hash_screen, lay_out_trial
from study.plan.simulated_participants import BayesianLearner, MapReader
from study.tasks.predict import TASK as PREDICT
from study.tasks.task import WordedTask
from study.tasks.theory import ShownExplanations

EXAMPLES = tuple(
    Example(category=category, source="pool", image=f"{category}{k}", map=f"{category}{k}-map")
    for category in ("fish", "boat")
    for k in (1, 2)
)
PLACEBOS = {
    "random_maps": ConditionAssets(target_map="random-map", relevance=0.5),
    "reinitialised_maps": ConditionAssets(target_map="forgotten-map", relevance=0.4),
    "wrong_examples": ConditionAssets(examples={"fish": ("dog1", "dog2"), "boat": ("cup1", "cup2")}, gain=-0.3),
    "influence_examples": ConditionAssets(examples={"fish": ("carp1", "carp2"), "boat": ("ship1", "ship2")}, gain=0.8),
    "nearest_examples": ConditionAssets(examples={"fish": ("eel1", "eel2"), "boat": ("raft1", "raft2")}, gain=0.2),
    "concepts": ConditionAssets(examples={"fish": ("fish-bars",), "boat": ("boat-bars",)}, gain=1.5),
    "prototypes": ConditionAssets(
        examples={"fish": ("fish-part1", "fish-part2"), "boat": ("boat-part1", "boat-part2")}, gain=-0.7
    ),
    "x_features": ConditionAssets(examples={"fish": ("fish-for", "fish-against"), "boat": ("boat-for",)}, gain=-1.1),
    "rules": ConditionAssets(examples={"fish": ("fish-rule",), "boat": ("boat-rule",)}, gain=0.4),
    "class_maps": ConditionAssets(examples={"fish": ("fish-map",), "boat": ("boat-map",)}, relevance=0.2),
    "uncertainty": ConditionAssets(target_map="gauge", relevance=0.6),
    "counterfactual": ConditionAssets(
        target_map="marked", examples={"fish": ("fish-marked",), "boat": ("boat-marked",)}, relevance=0.3
    ),
}
PREDICTED = WordedTask(PREDICT, {})
TRIAL = Trial(
    id="t",
    trial_type="std_incorrect",
    target="fish",
    alternative="boat",
    truth="boat",
    options=("boat", "fish"),
    ai_probability=0.6,
    source="s",
    assets=TrialAssets(target="target", target_map="target-map", examples=EXAMPLES, by_condition=PLACEBOS),
    teaching={"gain": 2.0},
    relevance=0.1,
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
        ("random_maps", True, False, "random-map", NOTHING),
        ("reinitialised_maps", True, False, "forgotten-map", NOTHING),
        ("wrong_examples", False, True, None, {"fish": ("dog1", "dog2"), "boat": ("cup1", "cup2")}),
        ("influence_examples", False, True, None, {"fish": ("carp1", "carp2"), "boat": ("ship1", "ship2")}),
        ("nearest_examples", False, True, None, {"fish": ("eel1", "eel2"), "boat": ("raft1", "raft2")}),
        ("uncertainty", True, False, "gauge", NOTHING),
        ("concepts", False, True, None, {"fish": ("fish-bars",), "boat": ("boat-bars",)}),
        ("prototypes", False, True, None, {"fish": ("fish-part1", "fish-part2"), "boat": ("boat-part1", "boat-part2")}),
        ("x_features", False, True, None, {"fish": ("fish-for", "fish-against"), "boat": ("boat-for",)}),
        ("rules", False, True, None, {"fish": ("fish-rule",), "boat": ("boat-rule",)}),
        ("class_maps", False, True, None, {"fish": ("fish-map",), "boat": ("boat-map",)}),
        ("counterfactual", True, True, "marked", {"fish": ("fish-marked",), "boat": ("boat-marked",)}),
    ],
)
def test_slots(name: str, saliency: bool, examples: bool, target_map: str | None, shown: object) -> None:
    condition = CONDITIONS[name]
    assert (condition.name, condition.shows_saliency, condition.shows_examples) == (name, saliency, examples)
    what = condition.shown(TRIAL)
    assert (what.target, what.target_map, what.examples) == ("target", target_map, shown)


@pytest.mark.parametrize("name", list(CONDITIONS))
def test_factors_say_what_is_shown(name: str) -> None:
    """Runs over the registry: a new condition cannot declare a factor it does not show, or the reverse.

    The heatmaps of `mapped_examples` are of the examples alone: nobody reads one of the image.
    """
    condition = CONDITIONS[name]
    what = condition.shown(TRIAL)
    of_examples = set() if name == "mapped_examples" else {e.map for e in EXAMPLES}
    maps = {"target-map", "random-map", "forgotten-map", "gauge", "marked"} | of_examples
    pictures = {what.target, what.target_map, *what.examples["boat"], *what.examples["fish"]} - {None}
    assert condition.name == name
    assert set(what.examples) == set(TRIAL.options)
    assert bool(pictures & maps) == condition.shows_saliency
    assert any(what.examples.values()) == condition.shows_examples


def test_a_placebo_is_read_as_what_it_is() -> None:
    """Catches simulated people who are moved by the true map or examples where they are shown a placebo.

    Closed form: the log-odds of her own label, 9 to 1, and 10 (relevance - .5) of the map or the gain of the examples.
    """
    kinds = {"map": MapReader(), "examples": BayesianLearner()}
    expected = {
        "saliency": ("map", log(9) + 10 * (0.1 - 0.5), -1),
        "random_maps": ("map", log(9), -1),
        "reinitialised_maps": ("map", log(9) + 10 * (0.4 - 0.5), -1),
        "examples": ("examples", -log(9) + 2.0, 1),
        "wrong_examples": ("examples", -log(9) - 0.3, 1),
        "influence_examples": ("examples", -log(9) + 0.8, 1),
        "nearest_examples": ("examples", -log(9) + 0.2, 1),
        "concepts": ("examples", -log(9) + 1.5, 1),
        "prototypes": ("examples", -log(9) - 0.7, 1),
        "x_features": ("examples", -log(9) - 1.1, 1),
        "rules": ("examples", -log(9) + 0.4, 1),
        "class_maps": ("map", log(9) + 10 * (0.2 - 0.5), -1),
        "uncertainty": ("map", log(9) + 10 * (0.6 - 0.5), -1),
        "counterfactual": ("map", log(9) + 10 * (0.3 - 0.5), -1),
    }
    for name, (kind, odds, sign) in expected.items():
        condition = CONDITIONS[name]
        p = kinds[kind].p_ai(
            condition.read(TRIAL), ShownExplanations(condition.shows_heatmaps, condition.shows_examples)
        )
        assert p == pytest.approx(1 / (1 + exp(-sign * odds))), name


def test_placebos_are_those_that_say_so() -> None:
    assert placebos() == ("random_maps", "reinitialised_maps", "wrong_examples")
    assert list_separate_conditions() == (
        *placebos(),
        "influence_examples",
        "nearest_examples",
        "mapped_examples",
        "concepts",
        "prototypes",
        "x_features",
        "rules",
        "class_maps",
        "uncertainty",
        "counterfactual",
    )


def test_a_study_without_placebos_keeps_its_hash() -> None:
    """A bundle frozen before there were placebos would be refused as changed."""
    without = TRIAL.assets.model_copy(update={"by_condition": {}})
    assert set(without.model_dump()) == {"target", "target_map", "examples"}
    assert set(TRIAL.assets.every) >= {"random-map", "forgotten-map", "dog1", "cup2", "fish1-map"}


def test_an_unknown_condition_is_named_with_its_neighbour() -> None:
    with pytest.raises(ForetellError, match="Did you mean 'saliency'"):
        CONDITIONS["salency"]


def test_sides_swap_the_screen_and_change_its_hash() -> None:
    straight = lay_out_trial("main", TRIAL, CONDITIONS["both"], "a", PREDICTED)
    flipped = lay_out_trial("main", TRIAL, CONDITIONS["both"], "b", PREDICTED)
    assert straight.screen["left"]["name"] == "boat"
    assert flipped.screen["left"] == straight.screen["right"]
    assert straight.shown_sha256 != flipped.shown_sha256


def test_shown_hash_covers_every_asset_in_its_place() -> None:
    """The bytes the hash stands for can be listed by hand from the screen."""
    screen = lay_out_trial("main", TRIAL, CONDITIONS["both"], "a", PREDICTED).screen
    assert assets(screen) == ["target", "target-map", "boat1-map", "boat2-map", "fish1-map", "fish2-map"]
    # printf 'target\ntarget-map\nboat1-map\nboat2-map\nfish1-map\nfish2-map' | sha256sum
    assert hash_screen(screen) == "26f8c1b94e37a91935b08327471a7a4a24b41fe2591f220ed77d11da67f15514"
