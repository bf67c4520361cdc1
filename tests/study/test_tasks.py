"""Tasks: what is asked, what stays sealed, how a response is scored; `accept_reject` from study file to table."""

from __future__ import annotations

import json
import tomllib
from math import exp, log
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, list_analyses
from study.analysis.report.composition import write_title
from study.analysis.responses import reading
from study.bundle import TRIAL_TYPES
from study.conditions import CONDITIONS
from study.locales import CATALOGUES, TASK_TEXTS
from study.participation.draft import make_draft_manifest, make_state
from study.participation.screens import assets, plan
from study.plan.config import StudyConfig
from study.plan.simulated_participants import BayesianLearner, BeliefProjector, Guesser, MapReader
from study.plan.texts import texts_of
from study.service import Service
from study.simulate import simulate
from study.tasks import TASKS
from study.tasks.task import Task
from study.tasks.theory import ShownExplanations
from tests.study.participants import MakeBundle, answer, query, to_trials

SETTINGS = {"study": {"task": "accept_reject"}}
RECIPE = Path(__file__).parents[2] / "data" / "studies" / "accept-reject.toml"
SEEN = ("none", "both", "nearest_examples", "uncertainty")


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return tomllib.loads(RECIPE.read_text(encoding="utf-8"))


def test_the_true_class_is_sealed_and_the_label_shown(service: Service, bundle: MakeBundle) -> None:
    """Everything that is sent before a response, in each condition, against the frozen trial.

    Catches the truth or the other option in a screen, and images of the other option, which where the AI errs is the
    true class, among those that the page loads; and a label that only some conditions show.
    """
    study = service.researcher.open_study(
        bundle(conditions=SEEN, config=SETTINGS, trials=6, practice=1), per_condition=1
    )
    manifest = service.workspace.find_shown_manifest(study)
    trials = {one.id: one for one in (*manifest.trials, *manifest.practice)}
    loaded = set()
    for condition in SEEN:
        token = service.participant.begin(study, mode="preview", condition=condition)
        state = to_trials(service, token)
        loaded.add(tuple(service.participant.preload(token)))
        while state["stage"] in ("practice", "main"):
            screen = state["trial"]
            (row,) = query(
                service,
                "SELECT t.item_id FROM trial_plan t JOIN session s ON s.session_id = t.session_id "
                f"WHERE t.trial_index = {screen['index']} AND s.condition = '{condition}'",
            )
            trial = trials[row[0]]
            hidden = {trial.truth, trial.alternative} - {trial.target}
            assert screen["label"]["text"] == f"The AI says: “{trial.target}”."
            assert {screen[side]["name"] for side in ("left", "right")} == {"The AI is right", "The AI is wrong"}
            assert not any(name in json.dumps(screen) for name in hidden)
            own = {*trial.assets.list_of_option(trial.target)}
            assert set(assets(screen)) <= own < set(trial.assets.every)
            assert bool(screen["label"]["samples"]) == CONDITIONS[condition].shows_examples
            loaded_now = service.participant.preload(token)
            assert not set(loaded_now) & (set(trial.assets.every) - own)
            ack = service.participant.record(token, answer(screen["index"]))
            if state["stage"] == "practice":
                assert ack.feedback == f"The true name of this picture is “{trial.truth}”."
            else:
                assert ack.feedback is None
            state = ack.state
    assert len(loaded) == 1  # the same bytes in every condition


def test_responses_are_scored_by_the_true_class(service: Service, bundle: MakeBundle) -> None:
    """Belief projectors, who know the true class, are nearly always correct; in `predict` only where the AI is right.

    Catches sides, options or the criterion exchanged anywhere from the simulated participant to the table. The columns
    are compared with one another: 10 participants of 12 trials, lapse .1.
    """
    study = service.researcher.open_study(bundle(config=SETTINGS, practice=0), per_condition=1)
    simulate(service, study, 10, {"belief_projector": 1.0}, seed=5)
    frame = service.researcher.responses(study, ("sim",))
    accuracy = frame.groupby("trial_type")["correct"].mean()
    assert (accuracy > 0.75).all(), accuracy
    assert set(frame["choice"]) == {"right", "wrong"}
    assert set(frame["task"]) == {"accept_reject"}
    ai_right = frame["category"] == frame["truth"]
    assert (frame["ai_correct"] == ai_right).all()
    assert (frame["correct"] == ((frame["choice"] == "right") == ai_right)).all()

    data = reading.prepare(frame)
    assert write_title(data.task, None) == "Do explanations help participants tell whether the AI is right?"
    offered = list_analyses(AnalysedStudy(data, manifest=service.workspace.find_shown_manifest(study)))
    assert "detection" in offered
    assert not {"projection", "theories", "overlay"} & offered.keys()


def test_the_bonus_counts_correct_judgements(service: Service, bundle: MakeBundle) -> None:
    """Catches a bonus for predictions of the AI: who always accepts is correct where the AI is, a third of the time."""
    pay = {"per_right": 1, "most": 100}
    study = service.researcher.open_study(bundle(config={**SETTINGS, "pay": pay}), per_condition=1)
    token = service.participant.begin(study)
    state = to_trials(service, token)
    while state["stage"] in ("practice", "main"):
        accept = next(side for side in ("left", "right") if state["trial"][side]["name"] == "The AI is right")
        state = service.participant.record(token, answer(state["trial"]["index"], accept)).state
    service.participant.finish(token)
    assert query(service, "SELECT minor_units FROM payment") == [(4,)]  # of 12 trials in three equal types


def test_attention_checks_have_the_buttons_where_they_always_are(bundle: MakeBundle) -> None:
    """Catches an attention check that exchanges right and wrong: who presses by habit would fail it."""
    from study.bundle import Bundle

    manifest = Bundle(bundle(config={**SETTINGS, "pacing": {"catch": 6}})).manifest
    asked = set()
    for side_flip in (0, 1):
        shown = plan(manifest, "both", side_flip, order_seed=3)
        assert len({one.screen["left"]["name"] for one in shown}) == 1
        asked |= {one.screen["asked"] for one in shown if one.phase == "catch"}
        assert all("label" not in one.screen for one in shown if one.phase == "catch")
        assert {one.trial.options[0] == one.screen["asked"] for one in shown if one.phase == "catch"} == {True}
    assert asked == {"The AI is right", "The AI is wrong"}


def test_what_simulated_participants_accept(bundle: MakeBundle) -> None:
    """Closed forms; catches a heatmap off the object that speaks for the AI's label, and the wrong task's formula."""
    from study.bundle import Bundle

    manifest = Bundle(bundle(config=SETTINGS)).manifest
    wrong, right = (
        next(one for one in manifest.trials if (one.target == one.truth) is known).model_copy(update={"relevance": 0.2})
        for known in (False, True)
    )
    wrong = wrong.model_copy(update={"teaching": wrong.teaching.model_copy(update={"gain": 2.0})})
    task: Task = TASKS["accept_reject"]
    seen, own = ShownExplanations(saliency=True, examples=True), log(9)  # a lapse of .1

    def p(odds: float) -> float:
        return 1 / (1 + exp(-odds))

    assert task.p_right(Guesser(), wrong, seen, 0.7) == 0.5
    assert task.p_right(BeliefProjector(), wrong, seen, 0.7) == pytest.approx(p(own + 0.7))
    assert task.p_right(MapReader(), wrong, seen, 0.0) == pytest.approx(1 - p(-own + 10 * (0.2 - 0.5)))
    assert task.p_right(MapReader(), right, seen, 0.0) == pytest.approx(p(own + 10 * (0.2 - 0.5)))
    assert task.p_right(BayesianLearner(), wrong, seen, 0.0) == pytest.approx(1 - p(-own + 2.0))  # persuaded


def test_the_task_is_part_of_the_study_and_the_default_is_not(recipe: dict[str, Any]) -> None:
    """Catches settings of older studies that change, so that they are other studies; and a task that is ignored."""
    asked = StudyConfig.model_validate(recipe)
    plain = {**recipe, "study": {key: value for key, value in recipe["study"].items() if key != "task"}}
    named = {**recipe, "study": {**recipe["study"], "task": "predict"}}
    former, same = StudyConfig.model_validate(plain), StudyConfig.model_validate(named)
    assert "task" not in former.model_dump(mode="json")["study"]
    assert former.digest == same.digest != asked.digest


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"conditions": ["none", "rules"]}, "'rules' cannot go with the task 'accept_reject', because it explains a"),
        ({"texts": {"chioce_right": "Yes"}}, "Did you mean 'choice_right'"),
        ({"study": {"name": "a", "title": "A", "task": "accept-reject"}}, "Did you mean 'accept_reject'"),
        ({"study": {"name": "a", "title": "A"}, "texts": {"choice_right": "Yes"}}, "Unknown text 'choice_right'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(recipe: dict[str, Any], change: dict[str, Any], said: str) -> None:
    """Catches a study that would show a choice between two names, or whose text nobody would read."""
    with pytest.raises(ValidationError, match=said):
        StudyConfig.model_validate(recipe | change)


@pytest.mark.parametrize("language", CATALOGUES)
def test_the_texts_of_tasks_are_complete(language: str) -> None:
    """Catches a text without a translation or placeholder, and a draft that shows the texts of another task."""
    for texts in TASK_TEXTS.values():
        assert list(texts[language]) == list(texts["en"])
        places = [sorted(set(text.split()) & {"{name}", "{left}", "{right}"}) for text in texts[language].values()]
        assert places == [sorted(set(text.split()) & {"{name}", "{left}", "{right}"}) for text in texts["en"].values()]
    own = TASK_TEXTS["accept_reject"][language]
    manifest = make_draft_manifest({**SETTINGS, "texts": {"choice_wrong": "No!"}}, language)
    assert texts_of(manifest)["question"] == own["question"] != CATALOGUES[language]["question"]
    trial = make_state(manifest, "trial", "both")["trial"]
    assert trial["label"]["text"] == own["label"].replace("{name}", "A")
    assert [trial[side]["name"] for side in ("left", "right")] == [own["choice_right"], "No!"]


def test_the_guides_task_asks_its_question(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a task whose words, options or refusals stand in a second place; the guide's file is used as it is."""
    guide = (RECIPE.parents[2] / "docs" / "how-to" / "add-a-task.md").read_text(encoding="utf-8")
    (tmp_path / "task_of_the_guide.py").write_text(guide.split("```python\n")[1].split("```")[0], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(TASKS._table, "sureness", "task_of_the_guide:TASK")
    given = {**recipe, "conditions": ["none"], "study": {**recipe["study"], "task": "sureness"}}
    assert StudyConfig.model_validate(given).task.name == "sureness"
    state = make_state(make_draft_manifest(given, "en"), "trial", "none")
    assert state["texts"]["question"] == "Was the AI sure?"
    assert state["trial"]["label"]["text"] == "The AI says: “A”."
    assert [state["trial"][side]["name"] for side in ("left", "right")] == ["At least 75% sure", "Less sure"]
    with pytest.raises(ForetellError, match="The task 'sureness' has no texts in the language 'de'"):
        make_draft_manifest(given, "de")
    for change, said in (
        ({"conditions": ["none", "uncertainty"]}, "'uncertainty' cannot go with the task 'sureness', because it shows"),
        ({"language": "de"}, "'sureness' has no texts in the language 'de'. Set language to 'en'"),
    ):
        with pytest.raises(ValidationError, match=said):
            StudyConfig.model_validate(given | change)


def test_a_task_needs_its_texts() -> None:
    """Catches a task of a package whose buttons would be empty, or a failure in the middle of a study."""
    known: Task = TASKS["accept_reject"]
    texts = {"en": {key: text for key, text in known.texts["en"].items() if key != "choice_wrong"}}
    with pytest.raises(ForetellError, match="has no text choice_wrong in en: add it"):
        Task(
            "own",
            known.find_right,
            known.find_sealed,
            known.p_right,
            "?",
            "act",
            "Acts",
            "it is",
            known.choices,
            texts=texts,
        )


def test_responses_to_several_tasks_are_not_one_analysis() -> None:
    """Catches responses pooled whose `correct` means different things, and data of `predict` that get another hash."""
    rows = [
        (f"p{i}", "cat", kind, 0, 0, (i + k) % 2, "predict") for i in range(4) for k, kind in enumerate(TRIAL_TYPES)
    ]
    frame = pd.DataFrame(rows, columns=[*reading.REQUIRED, "task"])
    assert reading.prepare(frame).sha256 == reading.prepare(frame.drop(columns="task")).sha256
    with pytest.raises(ForetellError, match="names several tasks"):
        reading.prepare(frame.assign(task=["accept_reject"] * 6 + ["predict"] * 6))
    with pytest.raises(ForetellError, match="Column 'task': Unknown task 'accept'"):
        reading.prepare(frame.assign(task="accept"))
    assert reading.prepare(frame.assign(task="accept_reject")).task.name == "accept_reject"
