"""Outcomes by condition, which blinded monitoring omits. Viewing them is logged."""

from __future__ import annotations

import json

import pandas as pd

from core.errors import ForetellError
from study.conditions import ORDER_MARK
from study.store import Connection, audit, repository


def note(db: Connection, study: str, reason: str, now: int, actor: str) -> None:
    """Log that a researcher unblinds, and why; raise `ForetellError` without a reason."""
    if not reason.strip():
        raise ForetellError("Unblinding before the end requires a reason, which is logged in the audit trail.")
    audit.append(db, now, actor, "unblinded", {"study": study, "reason": reason.strip()})


def is_blinded(db: Connection, study: str) -> bool:
    """Tell whether a version of the study collects responses and nobody has unblinded it."""
    version = repository.open_version_of(db, study)
    if version is None:
        return False
    acts = audit.acts(db, "unblinded")
    return not any(
        act["at"] >= version["opened_at"] and json.loads(act["detail_json"])["study"] == study for act in acts
    )


def spread_orders(participants: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each participant and each condition of theirs: one, or all of an order."""
    return participants.assign(condition=participants["condition"].str.split(ORDER_MARK)).explode("condition")


def table(responses: pd.DataFrame, participants: pd.DataFrame) -> pd.DataFrame:
    """Tabulate ``condition, begun, done, responses, accuracy`` (share of correct responses) and ``median_rt_ms``.

    Without responses in training. Participants who see all conditions count in each. Where no response is right or
    wrong, ``mean_level`` is in the place of ``accuracy``.
    """
    responses = responses[responses["block"] != "training"]
    given = spread_orders(participants[participants["condition"].notna()]).groupby("condition")
    people_of = given.agg(begun=("participant", "size"), done=("stage", lambda stages: int((stages == "done").sum())))
    is_rated = bool(len(responses)) and bool(responses["correct"].isna().all() and responses["level"].notna().any())
    complete = ("correct", lambda correct: correct.mean(skipna=False))  # texts that are not all coded have no accuracy
    averaged = {"mean_level": ("level", "mean")} if is_rated else {"accuracy": complete}
    summary = responses.groupby("condition").agg(
        responses=("correct", "size"), **averaged, median_rt_ms=("rt_ms", "median")
    )
    return people_of.join(summary).fillna({"responses": 0}).astype({"responses": int}).reset_index()
