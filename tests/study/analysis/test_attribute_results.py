"""Results of `discover`: planted hits and false alarms, in words that fit attributes, and nothing about predictions."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from study.analysis.exploratory import attributes
from study.analysis.exploratory.analysis import AnalysedStudy, list_analyses
from study.analysis.planned.analysis import execute
from study.analysis.power.simulation import curve
from study.analysis.power.truths import Theories
from study.analysis.report import results
from study.analysis.report.composition import list_facts
from study.analysis.report.figures import accuracy_figure
from study.analysis.responses import reading
from study.attributes.rows import ask_each
from study.plan.config import StudyConfig
from study.plan.preregistration import AnalysisPlan
from study.plan.simulated_participants import PARTICIPANT_SD
from study.tasks import TASKS
from study.tasks.discover import SEEN
from tests.study.attribute_studies import ATTRIBUTES, build_attributes

HITS = {"none": 0.6, "saliency": 0.85}
FALSE_ALARMS = {"none": 0.3, "saliency": 0.25}
"""Planted, before what differs between participants and between their beliefs about an attribute."""


@cache
def simulate(seed: int = 5) -> pd.DataFrame:
    """Simulate 60 participants, each with beliefs about 8 attributes that are the same in all of their 4 trials."""
    rng, rows = np.random.default_rng(seed), []
    used = [True] * 4 + [False] * 4
    for person in range(60):
        condition = ("none", "saliency")[person % 2]
        own, beliefs = rng.normal(0, 0.2), rng.normal(0, 0.4, 8)
        for trial in range(4):
            for k in range(8):
                p = (HITS if used[k] else FALSE_ALARMS)[condition]
                chosen = rng.random() < expit(np.log(p / (1 - p)) + own + beliefs[k])
                kind = "used" if used[k] else "unused"
                correct = int(chosen == used[k])
                rows.append((f"p{person}", f"attribute {k}", f"t{trial}-{k}", trial, kind, condition, correct))
    columns = ["participant", "category", "item", "trial", "trial_type", "condition", "correct"]
    frame = pd.DataFrame(rows, columns=columns)
    shown = (frame["condition"] == "saliency").astype(int)
    return frame.assign(saliency=shown, examples=0, task="discover", truth="", rt_ms=9000.0)


def plan_attributes() -> AnalysisPlan:
    return StudyConfig.model_validate(tomllib.loads(ATTRIBUTES)).plan


def average(p: float) -> float:
    """Average a planted probability over participants and beliefs, by SciPy's quadrature."""
    density = norm(scale=np.hypot(0.2, 0.4)).pdf
    return float(quad(lambda own: expit(np.log(p / (1 - p)) + own) * density(own), -4, 4)[0])


def test_the_default_plan_finds_planted_hits_and_false_alarms() -> None:
    """A contrast of hits and one of correct rejections, each within its interval of what was planted.

    Catches models without beliefs that last over trials, one contrast for both kinds, and a false alarm that counts as
    correct.
    """
    plan = plan_attributes()
    assert all("(1 | participant:category)" in model for model in plan.models.values())
    assert [model.split(" + ")[0] for model in plan.models.values()] == [
        "trial_type",
        "trial_type",
        "trial_type * saliency",
    ]
    assert [(one.more, one.less, one.trial_types) for one in plan.contrasts] == [
        ("saliency", "none", ("used",)),
        ("saliency", "none", ("unused",)),
    ]
    said = execute(reading.prepare(simulate()), plan)
    table = said.contrasts.set_index("contrast")
    for kind, planted in (
        ("used", average(HITS["saliency"]) - average(HITS["none"])),
        ("unused", average(FALSE_ALARMS["none"]) - average(FALSE_ALARMS["saliency"])),
    ):
        row = table.loc[f"saliency - none, {kind}"]
        low, high = row["points_low"] / 100, row["points_high"] / 100
        assert low < planted < high
    assert table.loc["saliency - none, used", "p_holm"] < 0.001


def test_hits_false_alarms_and_sensitivity_are_those_of_a_slow_count() -> None:
    """The oracle counts by loops and takes d' from SciPy's normal quantiles, corrected as Hautus (1995) says.

    Catches hits of one condition in another, rates of correct responses in their place, and a d' not corrected.
    """
    frame = reading.prepare(simulate()).frame
    table = attributes.tabulate(frame).set_index("condition")
    for condition in ("none", "saliency"):
        own = frame[frame["condition"] == condition]
        used = own[own["trial_type"] == "used"]
        unused = own[own["trial_type"] == "unused"]
        assert table.loc[condition, "hits"] == pytest.approx(used["correct"].mean())
        assert table.loc[condition, "false_alarms"] == pytest.approx(1 - unused["correct"].mean())
        sensitivities, criteria = [], []
        for person in own["participant"].unique():
            hits = sum(used.loc[used["participant"] == person, "correct"])
            alarms = sum(1 - unused.loc[unused["participant"] == person, "correct"])
            z_hit, z_alarm = (norm.ppf((count + 0.5) / 17) for count in (hits, alarms))
            sensitivities.append(z_hit - z_alarm)
            criteria.append(-(z_hit + z_alarm) / 2)
        assert table.loc[condition, "dprime"] == pytest.approx(np.mean(sensitivities))
        assert table.loc[condition, "criterion"] == pytest.approx(np.mean(criteria))
    assert table.loc["saliency", "hits_low"] < average(HITS["saliency"]) < table.loc["saliency", "hits_high"]


def test_a_report_of_attributes_says_nothing_about_predictions(tmp_path: Path) -> None:
    """Catches "the AI is right" or "predicted classes", and times of which a trial has one and its rows have five."""
    said = results.write(reading.prepare(simulate()), tmp_path, plan=plan_attributes())
    assert re.match(
        r"Saliency maps raised correct judgements of attributes from \d+% to \d+% where the AI uses them: \+\d+ ",
        said.sentences[0],
    )
    for name in ("report.md", "manuscript.md"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert not re.search(r"AI (is|was) (right|wrong)|AI right|AI wrong|predicted class|predict the AI", text), name
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "1,920, to 8 attributes" in report
    assert re.search(r"No explanation: participants chose \d+% of the attributes that the AI uses and \d+% of", report)
    offered = list_analyses(AnalysedStudy(said.data, models=said.analysis))
    left_out = {"detection", "diffusion", "metacognition", "projection", "speed", "log_times", "ex_gaussian"}
    assert not left_out & {*offered}
    assert {"attributes", "categories", "slopes"} <= {*offered}


def test_figure_1_and_the_facts_have_both_kinds() -> None:
    """The oracle is the raw share. Catches a warning about types of predictions, and a kind that is not drawn."""
    data = reading.prepare(simulate())
    figure, numbers = accuracy_figure(data)
    assert [series.name for series in figure.data] == ["Used by the AI", "Not used"]
    raw = simulate().groupby(["condition", "trial_type"])["correct"].mean()
    for row in numbers.to_dict("records"):
        assert row["accuracy"] == pytest.approx(raw[row["condition"], row["trial_type"]])
    assert not any("No responses to trials of type" in str(fact) for fact in list_facts(data, None, None).values())
    assert not any("type" in notice for notice in data.messages)


def test_a_repeated_judgement_is_refused() -> None:
    """Catches a file that was pasted twice, and refusal of the attributes of one trial as repeats of it."""
    with pytest.raises(Exception, match=r"repeat a participant's item"):
        reading.prepare(pd.concat([simulate(), simulate().head(3)], ignore_index=True))


def test_power_simulates_attributes_and_their_plan(tmp_path: Path) -> None:
    """The oracle is SciPy's integral over participants of the closed form of simulated participants.

    Catches trials that are not divided into attributes, and planned models that the simulated studies cannot have.
    """
    bundle, plan = build_attributes(tmp_path), plan_attributes()
    rows = [one for trial in bundle.manifest.trials for one in ask_each(trial)]
    world = Theories({"map_reader": 1.0}, rows, ("none", "saliency"), TASKS["discover"])
    means = world.tabulate_means().set_index(["condition", "trial_type"])["accuracy"]
    density = norm(scale=PARTICIPANT_SD).pdf
    for condition, strength in (("none", SEEN), ("saliency", SEEN + 1)):
        expected = quad(lambda own, at=strength: expit(at + own) * density(own), -4, 4)[0]
        for kind in ("used", "unused"):
            assert means[condition, kind] == pytest.approx(expected, abs=1e-6)
    study = world.study(3, np.random.default_rng(2))
    assert (set(study["trial_type"]), study["category"].nunique(), len(study)) == ({"used", "unused"}, 5, 6 * 10)
    table = curve(world, [8], studies=2, models=plan.models, tests=plan.tests, workers=1)
    assert table["failed"].tolist() == [0, 0]
