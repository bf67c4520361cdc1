"""The task `discover`, from the participants' page to the export: sets of attributes, and what is sealed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from core.errors import ForetellError
from study.attributes.rows import ask_each
from study.attributes.sets import NONE, read_set, write_set
from study.bundle import Bundle
from study.collection.integrity import find_faults, find_unplayable
from study.collection.tables.frames import COLUMNS
from study.conditions import CONDITIONS
from study.participation.screens import assets, lay_out_trial, plan
from study.plan.simulated_participants import sample_mixture
from study.plan.texts import word_task
from study.service import Service
from study.simulate import simulate
from study.tasks import TASKS
from study.tasks.discover import SEEN
from study.tasks.theory import ShownExplanations
from tests.study.attribute_studies import ATTRIBUTES, build_attributes
from tests.study.participants import answer, query, tamper, to_trials

TASK = TASKS["discover"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build_attributes(tmp_path_factory.mktemp("attributes"))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service(tmp_path / "home") as running:
        yield running


def respond(index: int, text: str | None, **values: Any) -> Any:
    return answer(index, "1", place=text, **values)


def test_a_set_is_read_as_it_is_written_and_anything_else_is_refused() -> None:
    """Catches an empty set that passes for none, a repeated or unknown attribute, and letters of a larger study."""
    for letters in ("", "a", "bd", "abcde"):
        assert read_set(write_set(frozenset(letters)), 5) == frozenset(letters)
    assert write_set(frozenset()) == NONE
    wrong = {"": "No attribute is chosen", "aa": "each named once", "ba": "each named once", "f": "does not ask about"}
    wrong |= {
        "-a": "does not ask about",
        "A": "does not ask about",
        "ａ": "does not ask",
        "a" * 10**6: "each named once",
    }
    wrong |= {
        "🦊": "does not ask about",
        "\u202ea": "does not ask about",
        "NaN": "does not ask about",
        "a,b": "does not",
    }
    for text, said in wrong.items():
        with pytest.raises(ForetellError, match=said) as refusal:
            read_set(text, 5)
        assert len(str(refusal.value)) < 300


def test_participants_respond_with_sets_and_each_attribute_is_a_row(built: Bundle, service: Service) -> None:
    """Eight participants of both conditions. The oracle is a judgement of each attribute made here by hand.

    Catches rows that are lost or repeated, a hit that is a false alarm, the participant's order taken for the frozen
    one, other bytes in a condition, a truth in what the page knows, and feedback in practice, which would tell it.
    """
    study = service.researcher.open_study(built.folder, per_condition=4)
    given = ("-", "cd", "abcde", "c", "be", "cde", "d", "ac")
    orders, shown = set(), []
    for text in given:
        token = service.participant.begin(study)
        state = to_trials(service, token)
        while state["stage"] in ("practice", "main"):
            trial = state["trial"]
            assert {*trial} == {"index", "target", "map", "options", "attributes", "reveals", "part"}
            assert (trial["reveals"], trial["part"], trial["attributes"]["ends"]) == (
                False,
                "attributes",
                ["bird", "fish"],
            )
            offered = trial["attributes"]["offered"]
            assert {*map(len, offered)} == {2}
            orders.add(tuple(one["letter"] for one in offered))
            shown.append(trial["map"] is not None)
            assert not {"used", "confidences", "adversarial"} & {*json.dumps(state).replace('"', " ").split()}
            ack = service.participant.record(token, respond(trial["index"], text))
            assert (ack.code, ack.feedback) == (201, None)
            state = ack.state
        if state["stage"] == "debrief":
            service.participant.finish(token)
    assert (len(orders), sum(shown)) == (8, 12)
    frame = service.researcher.responses(study)
    assert len(frame) == 8 * 2 * 5
    names = ["a frame", "its height", "the background", "the shape", "which way it faces"]
    used = {"the background", "the shape"}
    people = [f"P{row[0][:16]}" for row in query(service, "SELECT participant_id FROM session ORDER BY started_at")]
    for person, text in zip(people, given, strict=True):
        own = frame[frame["participant"] == person]
        assert (own["attribute"].tolist(), own["category"].tolist()) == (names * 2, names * 2)
        chosen = [letter in text for letter in "abcde"] * 2
        assert own["selected"].tolist() == [*map(int, chosen)]
        assert own["choice"].tolist() == ["selected" if one else "unselected" for one in chosen]
        assert own["trial_type"].tolist() == ["used" if name in used else "unused" for name in names * 2]
        assert own["correct"].tolist() == [
            int(one == (name in used)) for one, name in zip(chosen, names * 2, strict=True)
        ]
        assert set(own["exact"]) == {int(text == "cd")}
        assert sorted(own["attribute_position"].tolist()) == sorted([1, 2, 3, 4, 5] * 2)
    assert not frame.duplicated(["participant", "item"]).any()
    assert frame[["ai_correct", "ai_probability", "gain", "n_classes", "x", "cells"]].isna().all(axis=None)
    columns = [column.name for column in COLUMNS]
    first = columns.index("attribute")  # later columns come after these
    assert columns[first : first + 4] == ["attribute", "attribute_position", "selected", "exact"]
    assert list(find_unplayable(built.manifest)) == []
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []


def test_all_conditions_load_the_same_images(built: Bundle) -> None:
    """Catches heatmaps that are loaded where they are not shown, or the other way round."""
    for trial in built.manifest.trials:
        loaded = {*TASK.list_assets(trial)}
        assert loaded == {trial.assets.target, trial.assets.target_map}
        for name, count in (("none", 1), ("saliency", 2)):
            screen = lay_out_trial("main", trial, CONDITIONS[name], "a", word_task(built.manifest)).screen
            assert (len(assets(screen)), {*assets(screen)} <= loaded) == (count, True)


def test_sets_that_cannot_be_are_refused_with_a_sentence_and_kept(built: Bundle, service: Service) -> None:
    """Catches a response without attributes that is stored, one that is lost, a second one, and one to a past trial."""
    study = service.researcher.open_study(built.folder, per_condition=1)
    token = service.participant.begin(study)
    to_trials(service, token)
    for text, said in (
        (None, "asks for attributes"),
        ("", "No attribute is chosen"),
        ("cc", "once"),
        ("z" * 5_000, "not ask"),
    ):
        ack = service.participant.record(token, respond(0, text))
        assert (ack.code, said in ack.message) == (422, True)
    assert query(service, "SELECT count(*), max(length(payload_json)) < 2000 FROM response_conflict")[0] == (4, 1)
    assert query(service, "SELECT DISTINCT reason FROM response_conflict") == [("no such set",)]
    first = respond(0, "cd")
    assert service.participant.record(token, first).code == 201
    assert service.participant.record(token, first).code == 200
    assert service.participant.record(token, first.model_copy(update={"place": "c"})).code == 409
    assert service.participant.record(token, respond(0, "a")).code == 409
    assert service.participant.record(token, respond(2, "a")).code == 425
    assert query(service, "SELECT place, choice FROM response") == [("cd", "a")]


def test_verify_finds_a_set_and_an_order_that_were_changed(built: Bundle, service: Service) -> None:
    """Catches a choice that no longer follows from the set, and a plan whose order nobody drew."""
    study = service.researcher.open_study(built.folder, per_condition=1)
    token = service.participant.begin(study)
    to_trials(service, token)
    service.participant.record(token, respond(0, "cd"))
    tamper(service, "UPDATE response SET place = 'c'")
    faults = service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of)))
    assert any("the choice does not match what was pressed or marked" in fault for fault in faults)
    one, other = (plan(built.manifest, "none", 0, seed) for seed in (1, 2))
    listed = [[part["letter"] for part in laid[0].screen["attributes"]["offered"]] for laid in (one, other)]
    assert listed[0] != listed[1]
    assert all(laid.screen["attributes"] == one[0].screen["attributes"] for laid in one)


def test_the_page_is_told_in_german(tmp_path: Path, service: Service) -> None:
    """Catches words of the page that stay English."""
    bundle = build_attributes(tmp_path / "built", 'language = "de"\n' + ATTRIBUTES)
    study = service.researcher.open_study(bundle.folder, per_condition=1)
    state = to_trials(service, service.participant.begin(study))
    texts = state["texts"]
    assert (texts["none_of_these"], texts["end_first"]) == ("Nichts davon", "← KI: sicher {name}")


def test_simulated_participants_have_the_planted_hits_and_false_alarms(built: Bundle, service: Service) -> None:
    """The oracle is a closed form: log-odds of `SEEN`, and 1 more with heatmaps for those that read them.

    Catches hits that are false alarms, guessers who know the attributes, and a deviation that is knowledge.
    """
    rows = [one for trial in built.manifest.trials for one in ask_each(trial)]
    assert [one.trial_type for one in rows[:5]] == ["unused", "unused", "used", "used", "unused"]
    for theory, alone, shown in (
        ("guesser", 0.0, 0.0),
        ("belief_projector", SEEN, SEEN),
        ("map_reader", SEEN, SEEN + 1),
    ):
        (person,) = sample_mixture({theory: 1.0}, 1, np.random.default_rng(4))
        for one in rows:
            own = person.deviation * (1 if one.trial_type == "used" else -1) * (theory != "guesser")
            for seen, expected in ((False, alone), (True, shown)):
                p = person.p_right(TASK, one, ShownExplanations(saliency=seen))
                assert p == pytest.approx(expit(expected + own), rel=1e-9)
    study = service.researcher.open_study(built.folder, per_condition=40)
    simulate(service, study, 80, {"map_reader": 1.0}, seed=3)
    frame = service.researcher.responses(study, ("sim",))
    share = frame.groupby(["condition", "trial_type"])["selected"].mean()
    for (condition, kind), observed in share.items():
        strength = SEEN + (condition == "saliency")
        expected = expit(strength if kind == "used" else -strength)
        count = 40 * 2 * (2 if kind == "used" else 3)
        assert abs(observed - expected) < 4 * np.sqrt(0.25 / count) + 0.02  # averaged over participants
