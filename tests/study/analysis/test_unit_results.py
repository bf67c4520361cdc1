"""Results of `unit_choice`: planted effects of references, in words that fit units, and nothing about predictions."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from study.analysis.exploratory.analysis import AnalysedStudy, list_analyses
from study.analysis.planned import contrasts
from study.analysis.planned.analysis import execute
from study.analysis.power.simulation import curve
from study.analysis.power.truths import Theories
from study.analysis.report import results
from study.analysis.report.composition import list_facts
from study.analysis.report.figures import accuracy_figure
from study.analysis.responses import reading
from study.plan.config import StudyConfig
from study.plan.preregistration import AnalysisPlan
from study.plan.simulated_participants import PARTICIPANT_SD
from study.tasks import TASKS
from tests.study.unit_studies import UNITS, build_units

EFFECT = 1.5
"""Log-odds that the planted references add to a right choice."""


@cache
def simulate() -> pd.DataFrame:
    """Simulate choices of 40 participants about 10 units with two trials each, half of them with references."""
    rng, rows = np.random.default_rng(11), []
    of_unit, of_references = rng.normal(0, 0.3, 10), rng.normal(0, 0.4, 10)
    for person in range(40):
        own, shown = rng.normal(0, 0.4), person % 2
        for unit in range(10):
            for number in range(2):
                p = expit(own + of_unit[unit] + (EFFECT + of_references[unit]) * shown)
                rows.append((f"p{person}", f"layer:{unit}", f"t{unit}{number}", "unit", 0, shown, rng.random() < p))
    columns = ["participant", "category", "item", "trial_type", "saliency", "examples", "correct"]
    frame = pd.DataFrame(rows, columns=columns).astype({"correct": int})
    return frame.assign(condition=np.where(frame["examples"], "examples", "none"), task="unit_choice", truth="")


def plan_units() -> AnalysisPlan:
    return StudyConfig.model_validate(tomllib.loads(UNITS)).plan


def test_the_default_plan_of_units_finds_what_was_planted() -> None:
    """One test and one contrast, within their intervals of the truth; a plan of predictions has neither.

    Catches models with trial types, which units do not have, a contrast of no type, and slopes that are missing.
    """
    plan = plan_units()
    assert list(plan.models.values()) == [
        "1 + (1 | participant) + (examples || category) + (examples || item)",
        "examples + (1 | participant) + (examples || category) + (examples || item)",
    ]
    assert [(one.more, one.less) for one in plan.contrasts] == [("examples", "none")]
    said = execute(reading.prepare(simulate()), plan)
    (test,) = said.analysis.tests
    assert test.p is not None
    assert test.p < 0.001
    table = said.contrasts.set_index("contrast").loc["examples - none"]
    assert table["low"] < EFFECT < table["high"]
    raw = simulate().groupby("condition")["correct"].mean()
    assert table["accuracy_more"] == pytest.approx(raw["examples"], abs=0.02)
    assert table["accuracy_less"] == pytest.approx(raw["none"], abs=0.02)
    (default,) = contrasts.list_default(reading.prepare(simulate()).frame)
    assert default.name == "examples - none"


def test_a_report_of_units_says_nothing_about_predictions(tmp_path: Path) -> None:
    """Catches "the AI is right", d' or "predicted classes" in a report of units, and a reference level that is none."""
    said = results.write(reading.prepare(simulate()), tmp_path, plan=plan_units())
    assert re.match(
        r"Examples raised correct choices between two images from \d+% to \d+%: \+\d+ "
        r"percentage points \(95% CI \d+ to \d+\)\. It is the only planned difference\.",
        said.sentences[0],
    )
    for name in ("report.md", "manuscript.md"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert not re.search(r"AI (is|was) (right|wrong)|AI right|AI wrong|d'|predicted class|predict the AI", text), (
            name
        )
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Reference levels: no examples." in report
    assert "800, to 10 units" in report
    offered = list_analyses(AnalysedStudy(said.data, models=said.analysis))
    assert not {"detection", "diffusion", "metacognition", "projection", "means", "log_times"} & {*offered}
    assert {"categories", "slopes"} <= {*offered}


def test_figure_1_has_one_series_of_units() -> None:
    """The oracle is the raw share. Catches units drawn as predictions, or not at all."""
    figure, numbers = accuracy_figure(reading.prepare(simulate()))
    (series,) = figure.data
    assert series.name == "Units"
    raw = simulate().groupby("condition")["correct"].mean()
    assert dict(zip(numbers["condition"], numbers["accuracy"], strict=True)) == pytest.approx(raw.to_dict())
    assert list(series.x) == [0, 1]
    assert figure.layout.shapes[0].y0 == 0.5


def test_a_file_of_units_is_read_without_truth_and_types() -> None:
    """Catches a warning about trial types that no study of units has, and an unknown type that is taken."""
    data = reading.prepare(simulate())
    assert (data.task.name, data.dropped) == ("unit_choice", 0)
    facts: dict[str, Any] = list_facts(data, None, None)
    assert not any("No responses to trials of type" in str(fact) for fact in facts.values())
    assert not any("trial" in notice for notice in data.messages)


def test_power_simulates_units_and_their_plan(tmp_path: Path) -> None:
    """The oracle is SciPy's integral over participants of a learner's closed form, and one half without references.

    Catches trials of predictions in the simulated studies, units that are no categories, and planned models that the
    simulated studies cannot have.
    """
    bundle, plan = build_units(tmp_path), plan_units()
    world = Theories({"bayesian_learner": 1.0}, bundle.manifest.trials, ("none", "examples"), TASKS["unit_choice"])
    means = world.tabulate_means().set_index("condition")["accuracy"]
    gaps = [trial.unit.gap for trial in bundle.manifest.trials if trial.unit]

    def integrate(gap: float) -> float:
        density = norm(scale=PARTICIPANT_SD).pdf
        return float(quad(lambda own: expit(0.5 * gap + own) * density(own), -4, 4)[0])

    assert means["none"] == pytest.approx(0.5, abs=1e-12)
    assert means["examples"] == pytest.approx(np.mean([integrate(gap) for gap in gaps]), abs=1e-6)
    study = world.study(3, np.random.default_rng(2))
    assert (set(study["trial_type"]), study["category"].nunique(), len(study)) == ({"unit"}, 3, 6 * 6)
    table = curve(world, [8], studies=2, models=plan.models, tests=plan.tests, workers=1)
    assert table["failed"].tolist() == [0]
