"""Declared looks over real answers: made when due, once, in order; a verdict and no more; closing at the bound."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.errors import ForetellError
from study.analysis.planned import analysis as planned
from study.analysis.planned import stopping
from study.analysis.responses import reading as responses
from study.bundle import Bundle
from study.collection.interim import INTERIM_ANALYSIS
from study.plan.preregistration import AnalysisPlan
from study.service import Service
from study.store import audit
from tests.study.participants import answer, to_trials

MakeBundle = Callable[..., Path]
CONDITIONS = ("none", "saliency")
PLAN = {
    "models": {"only": "trial_type + saliency"},
    "contrasts": [],
    "participants": 6,
    "stopping": {"looks": [3, 6], "contrast": {"more": "saliency"}, "spending": "pocock"},
}


@pytest.fixture
def folder(bundle: MakeBundle) -> Path:
    return bundle(trials=18, practice=0, conditions=CONDITIONS, config={"analysis": PLAN})


def collected(service: Service, folder: Path, people: range, right: dict[str, float]) -> None:
    """Real answers over the service, right with a probability by condition."""
    ai = {trial.assets.target: trial.target for trial in Bundle(folder).manifest.trials}
    rng = np.random.default_rng(people.start)
    for person in people:
        token = service.participant.begin("demo", participant=str(person))
        state = to_trials(service, token)
        share = right["saliency" if state["trial"]["map"] else "none"]
        while state["stage"] == "main":
            screen = state["trial"]
            knows = rng.random() < share
            side = "left" if (screen["left"]["name"] == ai[screen["target"]]) == knows else "right"
            state = service.participant.record(token, answer(screen["index"], side)).state
        service.participant.finish(token)


def state_of(service: Service) -> str:
    return service.researcher.studies()[-1].state


def test_a_look_is_made_when_it_is_due_and_closes_at_its_bound(service: Service, folder: Path) -> None:
    service.researcher.open_study(folder, per_condition=6)
    collected(service, folder, range(5), {"none": 0.4, "saliency": 0.9})
    with pytest.raises(ForetellError, match=r"they are at 3, 6 .* smallest condition has 2"):
        service.researcher.run_interim_analysis("demo")
    collected(service, folder, range(5, 6), {"none": 0.4, "saliency": 0.9})
    standing = service.researcher.load_interim_status("demo")
    assert standing is not None
    assert (standing.finished, standing.due, list(standing.schedule["verdict"])) == (3, 1, ["", ""])
    made = service.researcher.run_interim_analysis("demo")
    assert made.is_crossed
    assert state_of(service) == "closed"
    acts = [row["act"] for row in service.workspace.store.read(audit.acts)]
    assert acts == ["opened", INTERIM_ANALYSIS, "closed"]
    with pytest.raises(ForetellError, match="No interim analysis of 'demo' is due"):
        service.researcher.run_interim_analysis("demo")
    assert service.researcher.verify() == []


def test_the_results_know_whether_a_look_ended_the_collection(service: Service, folder: Path) -> None:
    """Catches results of a collection that its plan has ended, called interim; and looks that nobody asked for."""
    service.researcher.open_study(folder, per_condition=6)
    study_hash = Bundle(folder).study_hash
    assert service.researcher.load_interim_analyses("0" * 64) is None
    assert service.researcher.load_interim_analyses(study_hash) == ()
    collected(service, folder, range(6), {"none": 0.4, "saliency": 0.9})

    def executed() -> planned.PlannedAnalysis:
        data = responses.prepare(service.researcher.responses("demo"), name="demo")
        return planned.execute(
            data, AnalysisPlan.model_validate(PLAN), looks=service.researcher.load_interim_analyses(study_hash)
        )

    before = executed()
    assert not before.final
    assert before.stopping == (
        "Collection is not complete: 3 of the 6 planned participants in the smallest condition (after exclusions). 0 "
        "of 2 interim analyses were made, and none closed the collection."
    )
    made = service.researcher.run_interim_analysis("demo")
    assert service.researcher.load_interim_analyses(study_hash) == (made,)
    after = executed()
    assert after.final
    assert after.stopping.startswith(made.sentence)
    assert f"|z| was {abs(made.z):.2f}, beyond the bound of {made.bound:.2f}" in after.stopping


def test_below_the_bound_it_goes_on_until_the_planned_end(service: Service, folder: Path) -> None:
    service.researcher.open_study(folder, per_condition=6)
    collected(service, folder, range(6), {"none": 0.6, "saliency": 0.6})
    first = service.researcher.run_interim_analysis("demo")
    assert (first.is_crossed, state_of(service)) == (False, "open")
    with pytest.raises(ForetellError, match="No interim analysis of 'demo' is due"):
        service.researcher.run_interim_analysis("demo")
    collected(service, folder, range(6, 12), {"none": 0.6, "saliency": 0.6})
    last = service.researcher.run_interim_analysis("demo")
    assert (last.number, last.is_last, last.is_crossed, state_of(service)) == (2, True, False, "closed")


def test_a_look_says_what_to_do_and_the_trail_what_was_seen(service: Service, folder: Path) -> None:
    """The same z as from the table of answers; neither the sentence nor the schedule tells it."""
    service.researcher.open_study(folder, per_condition=6)
    collected(service, folder, range(6), {"none": 0.5, "saliency": 0.7})
    expected = stopping.run_interim_analysis(service.researcher.responses("demo"), AnalysisPlan.model_validate(PLAN), 1)
    made = service.researcher.run_interim_analysis("demo")
    assert made == expected
    detail = json.loads(service.workspace.store.read(audit.acts)[1]["detail_json"])
    assert float(detail["z"]) == made.z
    standing = service.researcher.load_interim_status("demo")
    assert standing is not None
    assert f"{made.z:.2f}" not in made.sentence + standing.schedule.to_csv()
    assert next(iter(standing.schedule["verdict"])) == made.sentence


def test_who_has_not_finished_is_not_looked_at(service: Service, folder: Path) -> None:
    """One who stopped in the middle before all others does not count among the first; the table is cut by hand."""
    service.researcher.open_study(folder, per_condition=6)
    token = service.participant.begin("demo", participant="halfway")
    to_trials(service, token)
    service.participant.record(token, answer(0))
    halfway = service.researcher.responses("demo")["participant"].iloc[0]
    collected(service, folder, range(7), {"none": 0.5, "saliency": 0.7})
    answers = service.researcher.responses("demo")
    expected = stopping.run_interim_analysis(
        answers[answers["participant"] != halfway], AnalysisPlan.model_validate(PLAN), 1
    )
    assert stopping.run_interim_analysis(answers, AnalysisPlan.model_validate(PLAN), 1) != expected
    assert service.researcher.run_interim_analysis("demo") == expected


def test_a_study_that_declares_no_looks_has_none(service: Service, bundle: MakeBundle) -> None:
    service.researcher.open_study(bundle(), per_condition=1)
    assert service.researcher.load_interim_status("demo") is None
    with pytest.raises(ForetellError, match="declares no interim analyses"):
        service.researcher.run_interim_analysis("demo")
