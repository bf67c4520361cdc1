"""Settings that need right and wrong responses, for tasks that have neither."""

from __future__ import annotations

from study.plan.preregistration import AnalysisPlan
from study.plan.procedure import Procedure
from study.tasks.task import Task


def find_scoring(procedure: Procedure, plan: AnalysisPlan, task: Task) -> str:
    """Find a setting that needs right and wrong responses, and say what to do; empty where none does, or they are."""
    if task.is_scored:
        return ""
    wanted = {
        "pay: a bonus for correct responses": procedure.pay.per_right > 0 or procedure.pay.most > 0,
        "pacing.confidence: confidence in a response": procedure.pacing.confidence,
        "blocks: training": procedure.blocks is not None,
        "analysis.exclusions.least_accuracy: an exclusion by accuracy": plan.exclusions.least_accuracy is not None,
        "analysis.equivalence: a difference in the percentage of correct responses": plan.equivalence is not None,
    }
    needing = next((what for what, is_set in wanted.items() if is_set), None)
    if needing is None:
        return ""
    pay = ", and pay all participants a fixed amount" if needing.startswith("pay") else ""
    return f"{needing} needs right and wrong responses, and the task {task.name!r} has none. Remove it{pay}."
