"""The interim analyses that a study's plan declares: list, find and make them. Each is logged in the audit trail."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import pandas as pd

from core.errors import ForetellError
from core.types import Progress
from study.bundle import Manifest
from study.collection.tables.outcomes import spread_orders
from study.plan.preregistration import AnalysisPlan, load_frozen_plan
from study.store import Connection, audit, repository

if TYPE_CHECKING:
    from study.analysis.models.records import InterimAnalysis

INTERIM_ANALYSIS = "looked as planned"
_INTERIM_FIELDS = ("number", "of", "participants", "bound", "z")


@dataclass(frozen=True)
class InterimStatus:
    """The state of a study's interim analyses.

    Attributes
    ----------
    schedule
        look, participants (per condition), bound (on ``|z|``), verdict (empty before the analysis).
    finished
        Number of participants who finished in the smallest condition.
    due
        Number of the interim analysis that is due, or None.
    """

    schedule: pd.DataFrame
    finished: int
    due: int | None


def plan_of(manifest: Manifest) -> AnalysisPlan | None:
    """Return the plan of a study if it declares interim analyses."""
    plan = load_frozen_plan(manifest)
    return plan if plan is not None and plan.stopping is not None else None


def load_interim_status(db: Connection, manifest: Manifest, plan: AnalysisPlan, stages: pd.DataFrame) -> InterimStatus:
    """Derive the state of the interim analyses from condition, stage and study_hash alone, without any response."""
    from study.analysis.planned import stopping  # the models take seconds to import

    done = stages[(stages["stage"] == "done") & (stages["study_hash"] == manifest.study_hash)]
    conditions = spread_orders(done)["condition"]
    finished = {name: int((conditions == name).sum()) for name in manifest.conditions}
    looked = load_interim_analyses(db, manifest.study_hash)
    table = stopping.schedule(plan)
    verdicts = {look.number: look.sentence for look in looked}
    table["verdict"] = [verdicts.get(number, "") for number in table["look"]]
    following = len(looked) + 1
    ended = bool(looked) and looked[-1].is_final
    due = following if not ended and following <= stopping.due(finished, plan) else None
    return InterimStatus(table, min(finished.values()), due)


def due(study: str, standing: InterimStatus | None) -> int:
    """Return the number of the interim analysis that is due; raise `ForetellError` if there is none."""
    if standing is None:
        raise ForetellError(
            f"The plan of {study!r} declares no interim analyses: collect all planned participants, and add "
            "[analysis.stopping] to the next study's file."
        )
    if standing.due is None:
        at = ", ".join(map(str, standing.schedule["participants"]))
        raise ForetellError(
            f"No interim analysis of {study!r} is due: they are at {at} participants per condition, the smallest "
            f"condition has {standing.finished}, and each is made once, until one closes the collection."
        )
    return standing.due


def make(
    manifest: Manifest, number: int, responses: pd.DataFrame, participants: pd.DataFrame, progress: Progress
) -> InterimAnalysis:
    """Make an interim analysis of the participants who finished this version of a study, without recording it."""
    from study.analysis.planned import stopping

    plan, finished = plan_of(manifest), participants.loc[participants["stage"] == "done", "participant"]
    assert plan is not None
    mine = (responses["study_hash"] == manifest.study_hash) & responses["participant"].isin(set(finished))
    return stopping.run_interim_analysis(responses[mine], plan, number, progress)


def keep(db: Connection, study: str, study_hash: str, look: InterimAnalysis, now: int, actor: str) -> None:
    """Record an interim analysis, and close the collection if it decides so; raise `ForetellError` if made before."""
    if look.number in {earlier.number for earlier in load_interim_analyses(db, study_hash)}:
        raise ForetellError(f"Interim analysis {look.number} was already made: its verdict is in the audit trail.")
    detail = {**asdict(look), "z": repr(look.z), "study": study, "study_hash": study_hash, "verdict": look.sentence}
    audit.append(db, now, actor, INTERIM_ANALYSIS, detail)
    if look.is_final:
        audit.append(db, now, "server", "closed", {"study": study, "by": f"look {look.number}"})
        repository.close_version(db, study)


def load_interim_analyses(db: Connection, study_hash: str) -> tuple[InterimAnalysis, ...]:
    """List the interim analyses made of a frozen study, in order."""
    from study.analysis.models.records import InterimAnalysis

    details = [json.loads(row["detail_json"]) for row in audit.acts(db) if row["act"] == INTERIM_ANALYSIS]
    mine = [{key: d[key] for key in _INTERIM_FIELDS} for d in details if d["study_hash"] == study_hash]
    return tuple(InterimAnalysis(**{**look, "z": float(look["z"])}) for look in mine)
