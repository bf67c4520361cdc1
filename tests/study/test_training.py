"""Blocks of training and test: from the study file to the rows that are analysed, and what is refused."""

from __future__ import annotations

import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from core.errors import ForetellError
from study.analysis.report.composition import list_facts
from study.analysis.report.manuscript.method import _count_trials
from study.analysis.responses.reading import prepare
from study.bundle import Bundle, Manifest
from study.collection.integrity import find_faults, find_unplayable
from study.participation.blocks import Block, draw_blocks, read_place
from study.participation.draft import make_draft_manifest, make_state
from study.participation.screens import plan
from study.plan.config import StudyConfig
from study.plan.procedure import Blocks
from study.service import Service
from tests.study.participants import MakeBundle, answer, query, tamper, to_trials

BLOCKS = {"training": 3, "test": 4, "rounds": 2}
CONDITIONS = ("none", "both")
DEMO = Path(__file__).parents[2] / "data" / "studies" / "demo.toml"


def make_manifest(bundle: MakeBundle, blocks: dict[str, Any] | None = None, **options: Any) -> Manifest:
    """A manifest of 18 trials, 6 of each type, 14 of which a participant has."""
    config = {"blocks": BLOCKS if blocks is None else blocks, **options.pop("config", {})}
    return Bundle(
        bundle(config=config, conditions=CONDITIONS, trials=options.pop("trials", 18), practice=0, **options)
    ).manifest


def draw(manifest: Manifest, blocks: Blocks, seed: int) -> list[Block]:
    return list(draw_blocks(manifest.trials, blocks, np.random.default_rng(seed)))


def test_blocks_are_balanced_and_no_image_is_in_both(bundle: MakeBundle) -> None:
    """Over 60 participants: sizes, types within one of each other in every block and each half, each trial as often.

    Catches an image in training and test, a type that training uses up, blocks that all participants share, and
    trials that are never drawn. Expected: by hand; each trial is drawn by 14/18 of the participants, within 5 SD.
    """
    manifest, blocks = make_manifest(bundle), Blocks(**BLOCKS)
    drawn: Counter[str] = Counter()
    trained: Counter[str] = Counter()
    for seed in range(60):
        made = draw(manifest, blocks, seed)
        assert [(one.kind, one.round, len(one.trials), one.before) for one in made] == [
            ("training", 1, 3, 0),
            ("test", 1, 4, 3),
            ("training", 2, 3, 3),
            ("test", 2, 4, 6),
        ]
        halves = [[t for one in made if one.kind == kind for t in one.trials] for kind in ("training", "test")]
        for part in (*(one.trials for one in made), *halves):
            counts = Counter(trial.trial_type for trial in part)
            assert len(counts) == 3
            assert max(counts.values()) - min(counts.values()) <= 1
        images = [trial.assets.target for half in halves for trial in half]
        assert len({*images}) == 14
        drawn.update(trial.id for half in halves for trial in half)
        trained.update(trial.id for trial in halves[0])
    assert all(
        abs(drawn[trial.id] - 60 * 14 / 18) < 5 * np.sqrt(60 * (14 / 18) * (4 / 18)) for trial in manifest.trials
    )
    assert all(abs(trained[trial.id] - 60 / 3) < 5 * np.sqrt(60 * (1 / 3) * (2 / 3)) for trial in manifest.trials)


def test_types_of_unequal_frequency_are_in_both_in_proportion(bundle: MakeBundle) -> None:
    """Twelve trials of one type and three of each other: catches a rare type that training uses up."""
    trials = make_manifest(bundle, trials=36).trials
    kinds = ["std_correct"] * 12 + ["std_incorrect"] * 3 + ["adv_incorrect"] * 3
    uneven = [trial.model_copy(update={"trial_type": kind}) for trial, kind in zip(trials, kinds, strict=False)]
    for seed in range(20):
        made = list(draw_blocks(uneven, Blocks(training=6, test=12), np.random.default_rng(seed)))
        assert Counter(t.trial_type for t in made[0].trials) == {
            "std_correct": 4,
            "std_incorrect": 1,
            "adv_incorrect": 1,
        }


def test_only_training_shows_explanations(bundle: MakeBundle) -> None:
    """Catches an explanation in a test trial, test screens that differ between conditions, and a wrong place."""
    manifest = make_manifest(bundle)
    screens = {name: [one.screen for one in plan(manifest, name, 0, order_seed=5)] for name in CONDITIONS}
    for one, other in zip(*screens.values(), strict=True):
        place = read_place(one)
        assert place is not None
        assert one["block"] == other["block"]
        explained = bool(other["map"]) and bool(other["left"]["samples"])
        assert explained == (place.kind == "training")
        if place.kind == "test":
            assert one == other
    seen = [screen["block"]["seen"] for screen in screens["both"]]
    assert seen == [0, 1, 2, 3, 3, 3, 3, 3, 4, 5, 6, 6, 6, 6]
    assert [screen["block"]["place"] for screen in screens["both"]] == [1, 2, 3, 1, 2, 3, 4] * 2


def test_training_is_opened_after_its_response_and_test_never(service: Service, bundle: MakeBundle) -> None:
    """Two participants go through both rounds, with attention checks.

    Catches feedback in test or none in training, a test trial's explanation or prediction among what the page may
    load or know before its response, a reservoir that lacks a training image or has one to come, breaks elsewhere than
    between blocks, a bonus that needs the trials that were not drawn, and faults that the database does not have.
    """
    config = {"blocks": BLOCKS, "pacing": {"catch": 2, "break_every": 5}, "pay": {"per_right": 1, "most": 100}}
    study = service.researcher.open_study(
        bundle(config=config, conditions=CONDITIONS, trials=18, practice=1), per_condition=1
    )
    manifest = service.workspace.find_shown_manifest(study)
    by_image = {trial.assets.target: trial for trial in manifest.trials}
    for _ in CONDITIONS:
        token = service.participant.begin(study)
        state = to_trials(service, token)
        state = service.participant.record(token, answer(0)).state
        assert service.participant.list_reservoir(token) == []
        trained: list[str] = []
        while state["stage"] == "main":
            screen, place = state["trial"], state["trial"].get("block")
            later = [by_image[t["target"]] for t in state["trials"] if t.get("block", {}).get("kind") == "test"]
            loaded = {*service.participant.preload(token)}
            for trial in later:
                assert not loaded & ({*trial.assets.every} - {trial.assets.target})
            reservoir = service.participant.list_reservoir(token)
            assert [by_image[one["target"]].id for one in reservoir] == trained
            assert [one["feedback"] for one in reservoir] == [
                f"The AI called this picture “{by_image[one['target']].target}”." for one in reservoir
            ]
            ack = service.participant.record(token, answer(screen["index"]))
            assert ack.code == 201
            training = place is not None and place["kind"] == "training"
            assert (ack.feedback is not None) == training == bool(screen.get("reveals"))
            if training:
                trial = by_image[screen["target"]]
                assert ack.feedback == f"The AI called this picture “{trial.target}”."
                trained.append(trial.id)
            if place is not None:
                assert ("opening" in screen) == (place["place"] == 1)
                assert screen["reservoir"] == (place["kind"] == "test")
            state = ack.state
        assert len(trained) == 6
        service.participant.finish(token)
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []
    assert len(query(service, "SELECT minor_units FROM payment")) == 2
    frame = service.researcher.responses(study)
    assert frame.groupby("participant")["block"].value_counts().to_dict() == {
        (who, kind): n for who in set(frame["participant"]) for kind, n in (("training", 6), ("test", 8))
    }
    assert set(frame.loc[frame["block"] == "test", ["round", "n_training"]].itertuples(index=False, name=None)) == {
        (1, 3),
        (2, 6),
    }
    outcomes = service.researcher.unblind(study, "the test needs it")
    assert outcomes["responses"].tolist() == [8, 8]


def test_breaks_are_before_blocks(service: Service, bundle: MakeBundle) -> None:
    """Catches a break inside a block: without attention checks the blocks of 3 and 4 begin at 3, 7 and 10."""
    study = service.researcher.open_study(
        bundle(config={"blocks": BLOCKS}, conditions=CONDITIONS, trials=18, practice=0), per_condition=1
    )
    state = to_trials(service, service.participant.begin(study))
    assert state["breaks"] == [3, 7, 10]
    assert state["total"] == 14
    assert state["trial"]["opening"]["title"] == "Training 1 of 2"


def test_without_feedback_and_reservoir_nothing_is_opened(service: Service, bundle: MakeBundle) -> None:
    """Catches a setting without effect."""
    config = {"blocks": {**BLOCKS, "feedback": False, "reservoir": False}}
    study = service.researcher.open_study(
        bundle(config=config, conditions=CONDITIONS, trials=18, practice=0), per_condition=1
    )
    token = service.participant.begin(study)
    state = to_trials(service, token)
    while state["stage"] == "main":
        assert state["trial"]["reveals"] is state["trial"]["reservoir"] is False
        ack = service.participant.record(token, answer(state["trial"]["index"]))
        assert ack.feedback is None
        assert service.participant.list_reservoir(token) == []
        state = ack.state


def test_a_block_that_was_changed_is_noticed(service: Service, bundle: MakeBundle) -> None:
    """Catches a plan of blocks that `verify` does not draw again."""
    study = service.researcher.open_study(
        bundle(config={"blocks": BLOCKS}, conditions=CONDITIONS, trials=18, practice=0), per_condition=1
    )
    to_trials(service, service.participant.begin(study))
    tamper(service, """UPDATE screen SET screen_json = replace(screen_json, '"round": 2', '"round": 1')""")
    (said,) = service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of)))
    assert said.endswith("the plan does not match the study.")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"blocks": {"training": 5, "test": 7, "rounds": 9}},
            "blocks: 9 x (5 training + 7 test) trials are 108, but the study has 30. Lower them, or raise "
            "trials.categories or trials.per_type.",
        ),
        ({"blocks": {"training": 5}}, "Field required"),
        ({"blocks": {"training": 0, "test": 7}}, "greater than or equal to 1"),
        (
            {"blocks": {"training": 1, "test": 1}, "study": {"task": "reliance"}},
            "blocks: a trial of the task 'reliance' has two responses. Remove the section.",
        ),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], sentence: str) -> None:
    """Catches blocks that are found to be too long by the participant who runs out of trials."""
    content = tomllib.loads(DEMO.read_text(encoding="utf-8"))
    content["study"] |= changes.pop("study", {})
    with pytest.raises(ValidationError) as refused:
        StudyConfig.model_validate({**content, **changes, "trials": {**content["trials"], "categories": 10}})
    assert sentence in str(refused.value)


def test_a_bundle_that_is_too_small_or_repeats_an_image_is_not_opened(bundle: MakeBundle) -> None:
    """Catches trials that were dropped from the build, and one image in training and test."""
    manifest = make_manifest(bundle)
    assert list(find_unplayable(manifest)) == []
    (said,) = find_unplayable(manifest.model_copy(update={"trials": manifest.trials[:12]}))
    assert said.startswith("blocks: 2 x (3 training + 4 test) trials are 14, but the study has 12.")
    twice = (*manifest.trials, manifest.trials[4].model_copy(update={"id": "again"}))
    (said,) = find_unplayable(manifest.model_copy(update={"trials": twice}))
    assert said.startswith("Trial 'again' has the image of another one")


def test_a_study_without_blocks_keeps_its_settings_and_screens(bundle: MakeBundle) -> None:
    """Catches a key in the frozen settings, or in screens, of studies that have no blocks."""
    content = tomllib.loads(DEMO.read_text(encoding="utf-8"))
    assert "blocks" not in StudyConfig.model_validate(content).model_dump()
    manifest = Bundle(bundle(practice=0)).manifest
    assert not any("block" in one.screen for one in plan(manifest, "both", 0, order_seed=1))


def make_responses(**columns: Any) -> pd.DataFrame:
    """Rows of four participants, six in training and eight in test."""
    rows = [
        (f"p{who}", i + 1, "training" if i % 7 < 3 else "test", ("none", "both")[who % 2], (who + i) % 3 > 0)
        for who in range(4)
        for i in range(14)
    ]
    frame = pd.DataFrame(rows, columns=["participant", "trial", "block", "condition", "correct"])
    shown = (frame["condition"] == "both").astype(int)
    kinds = [("adv_incorrect", "std_incorrect", "std_correct")[i % 3] for i in range(len(frame))]
    known = {"saliency": shown, "examples": shown, "category": "fish", "trial_type": kinds, "n_training": 3}
    return frame.assign(**known, **columns).astype({"correct": int})


def test_training_is_left_out_of_every_analysis_and_said() -> None:
    """Catches training among the analysed rows, silence about it, and data that change when they are prepared twice."""
    data = prepare(make_responses())
    said = "24 of 56 responses are in training, with explanations, and were left out: only those in test, to the image"
    assert len(data.frame) == 32
    assert any(line.startswith(said) for line in data.messages)
    assert list_facts(data, None, None)["Training"].startswith(said)
    assert data.dropped == 0
    again = prepare(data.frame)
    assert again.sha256 == data.sha256
    assert set(data.frame["n_training"]) == {3}


def test_a_column_block_of_somebody_else_means_nothing() -> None:
    """Catches files with numbered blocks that are refused, or lose rows, or hash otherwise than without the column."""
    numbered = make_responses().assign(block=1).drop(columns="n_training")
    assert prepare(numbered).sha256 == prepare(numbered.drop(columns="block")).sha256


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"block": ["training", "main"] * 28}, "Column 'block' says 'training' and 'main': write training or test"),
        ({"block": "training"}, "Every response is in training, which is not analysed"),
        (
            {"n_training": ["5", "few"] * 28},
            "Column 'n_training' must have the number of training images seen, but row",
        ),
        ({"n_training": 1.5}, "must have the number of training images seen"),
    ],
)
def test_blocks_that_cannot_be_read_are_refused(columns: dict[str, Any], sentence: str) -> None:
    """Catches training that is analysed because its name was not understood."""
    with pytest.raises(ForetellError, match=sentence):
        prepare(make_responses().assign(**columns))


def test_the_manuscript_describes_training_and_its_exclusion(bundle: MakeBundle) -> None:
    """Catches a method section in which all trials are tests."""
    said = " ".join(_count_trials(make_manifest(bundle)))
    assert "Each participant responded to 14 trials, drawn for each participant from 18 of" in said
    assert "In test (4 trials a round), the image was shown alone in all conditions, without feedback." in said
    assert said.endswith("Responses in training were excluded from all analyses.")


def test_orders_have_no_long_runs_in_a_block(bundle: MakeBundle) -> None:
    """Catches blocks whose order is not drawn as that of other studies: at most three equal sides in a row."""
    manifest = make_manifest(bundle, {"training": 8, "test": 9})
    orders = set()
    for seed in range(30):
        planned = plan(manifest, "both", seed % 2, order_seed=seed)
        orders.add(tuple(one.trial.id for one in planned))
        for part in (planned[:8], planned[8:]):
            sides = [one.trial.ai_choice == one.left_is for one in part]
            left = sum(sides)
            if min(left, len(sides) - left) * 3 >= max(left, len(sides) - left):
                runs = [0] + [i for i, (a, b) in enumerate(pairwise(sides), 1) if a != b] + [len(sides)]
                assert max(b - a for a, b in pairwise(runs)) <= 3
    assert len(orders) == 30


def test_a_draft_shows_the_page_before_the_first_block() -> None:
    """Catches the page of texts that says, before training, that nothing is told any more."""
    drafted = make_draft_manifest(tomllib.loads(DEMO.read_text(encoding="utf-8")) | {"blocks": BLOCKS}, "de")
    assert make_state(drafted, "main")["trial"]["opening"]["title"] == "Training 1 von 2"
    assert "opening" not in make_state(drafted, "trial")["trial"]


def test_short_blocks_use_each_type_equally_often_in_all_rounds(bundle: MakeBundle) -> None:
    """Blocks of two and of one of three types. Catches one type that is always in test, and so never learned."""
    for seed in range(5):
        made = draw(make_manifest(bundle), Blocks(training=2, test=1, rounds=3), seed)
        for kind, times in (("training", 2), ("test", 1)):
            counts = Counter(trial.trial_type for one in made if one.kind == kind for trial in one.trials)
            assert {*counts.values()} == {times}
            assert len(counts) == 3
