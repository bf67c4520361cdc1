"""`predict` with more than two classes: from the trial that is chosen to the exported row, and what is refused."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from core.errors import ForetellError
from study.building.candidates import SetPredictions, candidates
from study.building.categories import choose_categories
from study.bundle import Bundle, Trial
from study.collection.integrity import find_faults, find_unplayable
from study.participation.draft import make_draft_manifest, make_state
from study.participation.screens import plan
from study.plan.config import StudyConfig
from study.plan.simulated_participants import THEORIES
from study.service import Service, SimulatedTrial
from study.simulate import choose_side, simulate
from study.tasks import open_task
from study.tasks.theory import ShownExplanations
from tests.study.building.test_candidates import NAMES, POOL, material
from tests.study.participants import MakeBundle, answer, query, to_trials

FOUR = {"trials": {"options": 4}}
PLAIN = ("none", "saliency")
RECIPE = Path(__file__).parents[2] / "data" / "studies" / "several-classes.toml"


def test_what_is_pressed_is_what_is_exported(service: Service, bundle: MakeBundle) -> None:
    """Participants who know the AI press its class, through practice, attention checks and bonus to the table.

    Catches a letter that is another class in the database, an order that is not the one on the screen, an attention
    check that cannot be passed, examples of two of the four classes among the images that are loaded, and faults that
    the database does not have.
    """
    config = {**FOUR, "pacing": {"catch": 2}, "pay": {"per_right": 1, "most": 100}}
    study = service.researcher.open_study(bundle(config=config, conditions=PLAIN, practice=1), per_condition=1)
    manifest = service.workspace.find_shown_manifest(study)
    targets = {trial.assets.target: trial.target for trial in (*manifest.trials, *manifest.practice)}
    shown: list[str] = []
    for _ in PLAIN:
        token = service.participant.begin(study)
        state = to_trials(service, token)
        assert state["keys"] == {"left": "1", "right": "4"}
        drawn = {e.image for t in (*manifest.trials, *manifest.practice) for e in t.assets.examples}
        assert not drawn & {*service.participant.preload(token)}
        while state["stage"] in ("practice", "main"):
            screen = state["trial"]
            names = [option["name"] for option in screen["options"]]
            assert len({*names}) == 4
            wanted = screen.get("asked") or targets[screen["target"]]
            shown += [" | ".join(names)] if state["stage"] == "main" and "asked" not in screen else []
            ack = service.participant.record(token, answer(screen["index"], str(names.index(wanted) + 1)))
            assert (ack.code, ack.feedback is None) == (201, state["stage"] == "main")
            state = ack.state
        service.participant.finish(token)
    frame = service.researcher.responses(study)
    assert (frame["correct"] == 1).all()
    assert (frame["choice"] == frame["category"]).all()
    assert frame["order"].tolist() == shown
    assert set(frame["n_classes"]) == {4}
    assert set(service.researcher.load_participants(study)["catch_missed"]) == {0}
    assert query(service, "SELECT minor_units FROM payment") == [(12,)] * 2
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []
    service.researcher.close_study(study)
    replayed = service.researcher.replay(study, str(frame["participant"].iloc[0])).trials
    assert all(one.correct and len(one.right) == 1 for one in replayed if one.phase != "practice")


def test_a_response_counts_once_and_for_a_class_that_is_there(service: Service, bundle: MakeBundle) -> None:
    """Catches a fifth of four options, a side of two, a retry stored twice and a second response that replaces one."""
    study = service.researcher.open_study(bundle(config=FOUR, conditions=PLAIN, practice=0), per_condition=1)
    token = service.participant.begin(study)
    to_trials(service, token)
    for side in ("5", "left"):
        refused = service.participant.record(token, answer(0, side))
        assert (refused.code, refused.message) == (
            422,
            f"This trial has no option {side!r}: its options are 1, 2, 3, 4.",
        )
    assert service.participant.record(token, given := answer(0, "3")).code == 201
    assert service.participant.record(token, given).code == 200
    assert service.participant.record(token, answer(0, "4")).code == 409
    assert query(service, "SELECT side FROM response") == [("3",)]


def test_the_place_of_the_ais_class_tells_nothing(bundle: MakeBundle) -> None:
    """Over 200 participants, each place and letter is the AI's in a quarter of the trials, within 5 SD of a binomial.

    Catches an order that favours a place, that is the same for all participants, or letters of which the first is
    right; and a screen that has more of one option than of another.
    """
    manifest = Bundle(bundle(config=FOUR, conditions=PLAIN, practice=0, trials=24)).manifest
    places: Counter[int] = Counter()
    orders = set()
    for seed in range(200):
        for one in plan(manifest, "saliency", seed % 2, order_seed=seed):
            options = one.screen["options"]
            assert {tuple(option) for option in options} == {("name", "samples", "letter")}
            assert not any(option["samples"] for option in options)
            names = [option["name"] for option in options]
            places[names.index(one.trial.target)] += 1
            orders.add((one.trial.id, *names))
            assert [one.trial.options["abcd".index(option["letter"])] for option in options] == names
    n = 200 * 24
    assert all(abs(places[place] - n / 4) < 5 * math.sqrt(n * 3 / 16) for place in range(4))
    assert len(orders) == 24 * 24  # each of the 4! orders of each trial


def _trial(*, is_right: bool, options: int, relevance: float | None = None) -> Trial:
    facts: dict[str, Any] = {"assets": {"target": "0", "target_map": "1", "examples": ()}, "teaching": {}}
    names = ("cat", "dog", "cow", "ant", "bee")[:options]
    kind, target = ("std_correct", "cat") if is_right else ("std_incorrect", "dog")
    return Trial(
        id="t", trial_type=kind, target=target, alternative="dog" if is_right else "cat", truth="cat", options=names,
        ai_probability=0.9, source="s", saliency={}, relevance=relevance, **facts,
    )  # fmt: skip


@pytest.mark.parametrize("options", [2, 3, 5])
def test_simulated_participants_choose_by_luces_rule(options: int) -> None:
    """Probabilities by hand: one's own label has the odds 9 to 1 against each other class, and guessing is 1/k.

    Catches guesses that are right half of the time among five, a sum of probabilities other than 1, and a heatmap that
    tells participants more than that it is not their own label.
    """
    right, wrong = (_trial(is_right=is_right, options=options) for is_right in (True, False))
    projector, guesser, absent = (THEORIES[name]() for name in ("belief_projector", "guesser", "inattentive"))
    nothing = ShownExplanations()
    assert guesser.p_ai(right, nothing) == guesser.p_ai(wrong, nothing) == 1 / options
    assert projector.p_ai(right, nothing) == pytest.approx(9 / (9 + options - 1))
    assert projector.p_ai(wrong, nothing) == pytest.approx(1 / (9 + options - 1))
    assert absent.p_ai(wrong, nothing) == pytest.approx(0.6 / (9 + options - 1) + 0.4 / options)
    blank = _trial(is_right=False, options=options, relevance=0.0)
    towards = math.exp(math.log(9) - 10 * 0.5)
    read = THEORIES["map_reader"]().p_ai(blank, ShownExplanations(saliency=True))
    assert read == pytest.approx(1 / (towards + options - 1))
    assert options == 2 or read < 1 / (options - 1)


@pytest.mark.parametrize(
    ("is_right", "shares"), [(True, [0.5, 0.125, 0.125, 0.125, 0.125]), (False, [0.1] * 4 + [0.6])]
)
def test_wrong_classes_of_simulated_participants(*, is_right: bool, shares: list[float]) -> None:
    """Shares over a grid of quantiles, by hand: where the AI errs, 1 - (k - 1) p is left for the true class, the last.

    Catches wrong classes of a scale's levels, and participants who never choose what they see themselves.
    """
    task = open_task("predict", 5)
    known = SimulatedTrial(_trial(is_right=is_right, options=5), False, task, ("2",), ("1", "3", "5", "4"), None)
    sides = [choose_side(known, shares[0], (k + 0.5) / 10_000) for k in range(10_000)]
    assert [sides.count(side) / len(sides) for side in "21354"] == pytest.approx(shares, abs=2e-4)


def test_guessers_are_right_once_in_four(service: Service, bundle: MakeBundle) -> None:
    """768 responses through the service: within 4 SD of 1/4, which is 9 SD below one half."""
    study = service.researcher.open_study(bundle(config=FOUR, conditions=PLAIN, trials=24), per_condition=1)
    simulate(service, study, 32, {"guesser": 1.0}, seed=3)
    frame = service.researcher.responses(study, ("sim",))
    assert abs(frame["correct"].mean() - 1 / 4) < 4 * math.sqrt(3 / 16 / len(frame))
    wrong = frame[frame["correct"] == 0]
    assert (wrong["choice"] == wrong["truth"])[wrong["trial_type"] != "std_correct"].mean() < 0.45


def test_further_foils_are_the_next_most_confusable() -> None:
    """By sorting the counts of the confusion matrix, both ways, in plain Python.

    Catches the truth or the target among the further foils, one that the pool cannot teach, and a trial with fewer
    options than it should have.
    """
    standard = [(k, k) for k in range(5) for _ in range(4)] + [(0, 1), (0, 1), (4, 0), (2, 0), (2, 0), (2, 0), (1, 4)]
    base = material(standard)
    of = {n: SetPredictions(NAMES, base.pool, base.standard, base.adversarial, options=n) for n in (2, 3, 4, 5)}
    both_ways = {k: standard.count((0, k)) + standard.count((k, 0)) for k in range(1, 5)}
    ranked = sorted(both_ways, key=lambda k: (-both_ways[k], k))
    assert ranked == [2, 1, 4, 3]
    for n, m in of.items():
        (right, *_), wrong = candidates(m, 0, "std_correct"), candidates(m, 2, "std_incorrect")
        assert (right.target, right.alternative, right.others) == (0, 2, (1, 4, 3)[: n - 2])
        assert (wrong[0].target, wrong[0].alternative, wrong[0].others) == (0, 2, (1, 4, 3)[: n - 2])
    untaught = [pair for pair in POOL if pair != (4, 4)]
    few = SetPredictions(NAMES, material(pool=untaught).pool, base.standard, base.adversarial, options=4)
    assert candidates(few, 0, "std_correct")[0].others == (1, 3)
    with pytest.raises(
        ForetellError, match=r"trials.options is 5, but only 4 classes have 2 images in the example pool"
    ):
        choose_categories(SetPredictions(NAMES, few.pool, base.standard, base.adversarial, options=5), 1, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"conditions": ["none", "both"]},
            "'both' cannot go with the task 'predict', because it shows examples of two",
        ),
        ({"keys": {"left": "d", "right": "k"}}, "the keys of the task 'predict' are the digits 1 to 5. Remove"),
        ({"trials": {"options": 6}}, "less than or equal to 5"),
        (
            {"study": {"name": "a", "title": "A", "task": "agreement"}},
            "is 5, but a trial of the task 'agreement' has 2",
        ),
    ],
)
def test_what_makes_no_sense_with_several_classes_is_refused_in_words(change: dict[str, Any], said: str) -> None:
    """Catches examples of two of five classes, keys that press nothing, and a scale of classes."""
    recipe = tomllib.loads(RECIPE.read_text(encoding="utf-8"))
    assert StudyConfig.model_validate(recipe).task.chance == 1 / 5
    assert StudyConfig.model_validate(recipe | {"pacing": {"confidence": True}}).task.count == 5
    with pytest.raises(ValidationError, match=said):
        StudyConfig.model_validate(recipe | change)


def test_a_study_of_two_options_is_what_it_was() -> None:
    """Catches a setting that changes the hash of every study frozen before it existed."""
    recipe = tomllib.loads(RECIPE.read_text(encoding="utf-8"))
    two = StudyConfig.model_validate(recipe | {"trials": {"categories": 8, "options": 2}})
    assert two.digest == StudyConfig.model_validate(recipe | {"trials": {"categories": 8}}).digest
    assert "options" not in two.model_dump(mode="json")["trials"]
    assert two.task is open_task("predict", 2)


def test_options_that_are_not_as_many_as_the_study_has_are_found(bundle: MakeBundle) -> None:
    """Catches a bundle that a server would open although a trial has another number of options, or the AI's not."""
    manifest = Bundle(bundle(config=FOUR, conditions=PLAIN)).manifest
    assert list(find_unplayable(manifest)) == []
    first, *rest = manifest.trials
    for options in (first.options[:3], ("x", "y", "z", first.alternative)):
        broken = manifest.model_copy(update={"trials": (first.model_copy(update={"options": options}), *rest)})
        (said,) = find_unplayable(broken)
        assert f"the foil {first.alternative!r} and 2 more. Build the study again." in said


def test_a_draft_has_as_many_names() -> None:
    """Catches a draft of two names on the page where texts are written, and texts that say two."""
    content = {"study": {"title": "T"}, "trials": {"options": 3}, "conditions": list(PLAIN)}
    state = make_state(make_draft_manifest(content, "en"), "trial")
    assert [option["name"] for option in state["trial"]["options"]] == ["A", "B", "C"]
    assert state["keys"] == {"left": "1", "right": "3"}
    consent = json.dumps(make_state(make_draft_manifest(content, "de"), "consent"), ensure_ascii=False)
    assert "welchen von mehreren Namen" in consent


def test_rows_of_two_classes_have_the_same_columns(service: Service, bundle: MakeBundle) -> None:
    """Catches columns that only rows of several classes have: files of two studies would differ."""
    study = service.researcher.open_study(bundle(practice=0), per_condition=1)
    simulate(service, study, 1, {"guesser": 1.0}, seed=1)
    frame = service.researcher.responses(study, ("sim",))
    assert set(frame["n_classes"]) == {2}
    assert pd.isna(frame["order"]).all()
