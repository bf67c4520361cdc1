"""What each condition would teach a reader of it: ``python -m benchmarks.readers``.

A study of the scenes is built with every condition, and one of ``scenes:prototypes`` with the condition that needs it.
For each trial type the benchmark has the probability that a simulated participant predicts the AI who reads what the
condition shows by its rule (`study.conditions.condition.Condition.read`): heatmaps as `map_reader`, examples and what
takes their places as `bayesian_learner`. It says what a condition offers to such a reader, and is no evidence about
people. ``--networks scenes:prototypes --join FILE`` measures the study of one network again, and replaces its rows in a
stored result.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import arguments, hand_over, join_measured, note_join
from study.building.build import build
from study.bundle import TRIAL_TYPES, Bundle, Trial
from study.conditions import CONDITIONS
from study.conditions.condition import Condition
from study.plan.simulated_participants import compute_expected_accuracy
from study.tasks.theory import ShownExplanations

FILE = """
conditions = {conditions}
[study]
name = "readers"
title = "Readers"
seed = 1
[classifier]
model = "{model}"
[sets.pool]
set = "scenes"
split = "pool"
[sets.standard]
set = "scenes"
split = "standard"
[sets.adversarial]
set = "scenes"
split = "adversarial"
[trials]
categories = {categories}
practice = 0
[teaching]
threshold = {threshold}
[saliency]
parameters = {{ samples = 256 }}
"""
PROTOTYPES = "prototypes"
STUDIES = {
    "scenes": [name for name in CONDITIONS if name != PROTOTYPES],
    "scenes:prototypes": ["none", PROTOTYPES],
}
"""Conditions of the study of each network."""
THRESHOLDS = {"scenes": 0.8, "scenes:prototypes": 0.0}
"""A trial is dropped if no teaching set takes the learner above this; prototypes are shown without a teaching set."""
Z = 1.96


def main(words: Sequence[str] | None = None) -> None:
    """Read the arguments, build, read, print."""
    parser = arguments("readers")
    parser.add_argument("--categories", type=int, default=10, help="categories, with a trial of each type")
    parser.add_argument("--home", type=Path, help="folder that keeps the built studies; none are kept by default")
    parser.add_argument("--networks", nargs="+", choices=STUDIES, default=list(STUDIES), help="only these")
    parser.add_argument("--join", type=Path, help="a stored result, whose rows of these networks are replaced")
    given = parser.parse_args(words)

    def run() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            return measure(given.categories, given.home or Path(folder), given.networks)

    if given.join is None:
        hand_over("readers", given, run)
    else:
        join_measured(given, run, join_networks)


def join_networks(stored: dict[str, Any], measured: dict[str, Any], machine: dict[str, Any]) -> dict[str, Any]:
    """Replace the rows of the networks that were measured again, and note when.

    Raises
    ------
    SystemExit
        The stored result is of another number of categories.
    """
    if stored["result"]["categories"] != measured["categories"]:
        raise SystemExit(f"The stored result is of {stored['result']['categories']} categories: give --categories.")
    again = list(dict.fromkeys(row["network"] for row in measured["rows"]))
    kept = [row for row in stored["result"]["rows"] if row["network"] not in again]
    rows = sorted([*kept, *measured["rows"]], key=lambda row: list(STUDIES).index(row["network"]))
    result = stored["result"] | {"rows": rows}
    return stored | {"machine": note_join(stored, machine, {"networks": again}), "result": result}


def measure(categories: int, home: Path, networks: Sequence[str] = tuple(STUDIES)) -> dict[str, Any]:
    """Build the studies of the networks, and read every condition in its own, JSON-ready."""
    rows = []
    for model in networks:
        conditions = STUDIES[model]
        file = home / f"readers-{model.replace(':', '-')}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        listed = str(conditions).replace("'", '"')
        study = FILE.format(conditions=listed, model=model, categories=categories, threshold=THRESHOLDS[model])
        file.write_text(study, encoding="utf-8")
        bundle = build(file, home)
        rows += [{"network": model} | row for name in conditions for row in read(bundle, CONDITIONS[name])]
    return {"categories": categories, "rows": rows}


def list_readers(condition: Condition) -> list[str]:
    """List the theories that make something of what a condition shows; without an explanation, belief projection."""
    offered = {"map_reader": condition.shows_saliency, "bayesian_learner": condition.shows_examples}
    return [name for name, is_shown in offered.items() if is_shown] or ["belief_projector"]


def read(bundle: Bundle, condition: Condition) -> list[dict[str, Any]]:
    """Compute for each reader and trial type the mean probability of predicting the AI, with a 95% interval."""
    shown = ShownExplanations(condition.shows_saliency, condition.shows_examples)
    shares = []
    for reader in list_readers(condition):
        row: dict[str, Any] = {"condition": condition.name, "reader": reader}
        for kind in TRIAL_TYPES:
            trials = [trial for trial in bundle.manifest.trials if trial.trial_type == kind]
            row[kind] = summarise([_predict(condition, trial, reader, shown) for trial in trials])
        shares.append(row)
    return shares


def summarise(values: Sequence[float]) -> list[float]:
    """Return the mean of trials and its 95% interval, normal, within 0 and 1."""
    each = np.array(values)
    error = Z * each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else float("nan")
    ends = (each.mean(), max(0.0, each.mean() - error), min(1.0, each.mean() + error))
    return [round(float(value), 4) for value in ends]


def _predict(condition: Condition, trial: Trial, reader: str, shown: ShownExplanations) -> float:
    return compute_expected_accuracy({reader: 1.0}, condition.read(trial), shown)


if __name__ == "__main__":
    main()
