"""The answer first: size and direction of each effect, and verdicts at the level that the plan froze."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from study.analysis.planned import analysis as planned
from study.analysis.planned import nested
from study.analysis.report import finding, results
from study.analysis.responses import reading as responses
from study.plan.preregistration import AnalysisPlan
from tests.study.analysis.simulated import study
from tests.study.analysis.test_report import answered

BORDERLINE = 50
"""Seed of a study whose tests have p (Holm) = .026 of explanations, and .191 of the interaction."""


def test_the_headline_goes_by_the_frozen_alpha(tmp_path: Path) -> None:
    """Catches a verdict at .05 whatever the plan says, and captions of 95% for other intervals."""
    data = responses.prepare(study(24, 8, 4, seed=BORDERLINE))
    p = [test.decisive_p or 0.0 for test in nested.analyze(data).tests]
    assert 0.01 < p[0] < 0.05 < p[1] < 0.3
    verdicts = {}
    for alpha in (0.01, 0.05, 0.3):
        done = planned.execute(data, AnalysisPlan(alpha=alpha, participants=4))
        said = finding.compute_headline(done.analysis, data, done).sentences
        verdicts[alpha] = [line.startswith("There is evidence") for line in said if line.startswith("There is")]
        assert any(f"({100 * (1 - alpha):g}% CI " in line for line in said)
        assert any("tested at alpha = .01" in line for line in said) == (alpha == 0.01)
    assert verdicts == {0.01: [False, False], 0.05: [True, False], 0.3: [True, True]}
    results.write(data, tmp_path, plan=AnalysisPlan(alpha=0.01, participants=4))
    assert "The 99% intervals are uncorrected" in (tmp_path / "report.html").read_text()
    assert "There is evidence" not in (tmp_path / "report.md").read_text()


def test_looks_lower_the_level_of_the_headline() -> None:
    # Two equal looks at .05 with Pocock's spending test at |z| = 2.157 and 2.201 (R: gsDesign, sfLDPocock): p = .0277.
    stopping = {"looks": [4, 8], "contrast": {"more": "both"}, "spending": "pocock"}
    data = responses.prepare(study(32, 8, 8, seed=11))
    done = planned.execute(data, AnalysisPlan(participants=8, stopping=stopping))
    found = finding.compute_headline(done.analysis, data, done)
    assert found.level == pytest.approx(0.0277, abs=2e-4)
    assert any("97.23% CI" in line for line in found.sentences)


def test_effects_come_with_size_direction_and_interval(tmp_path: Path) -> None:
    # The probabilities are simulated by their definition: the mean over many new participants and categories.
    data = responses.prepare(study(32, 8, 8, seed=11))
    found = results.write(data, tmp_path)
    row = found.contrasts.set_index("contrast").loc["saliency - none, adv_incorrect"]
    model, rng = found.analysis.largest, np.random.default_rng(0)
    estimates = {c.term: c.estimate for c in model.coefficients}
    sds = {(effect.group, effect.term): effect.sd for effect in model.random}
    own = sum(sds[group, "(Intercept)"] * rng.standard_normal(400_000) for group in ("participant", "category"))
    slope = sds.get(("category", "saliency"), 0.0) * rng.standard_normal(400_000)
    log_odds = [estimates["(Intercept)"] + on * (estimates["saliency"] + slope) + own for on in (0, 1)]
    less, more = (np.mean(1 / (1 + np.exp(-eta))) for eta in log_odds)
    assert row["accuracy_less"] == pytest.approx(less, abs=2e-3)
    assert row["points"] == pytest.approx(100 * (more - less), abs=0.2)
    assert row["points_low"] < row["points"] < row["points_high"]
    text = (tmp_path / "report.md").read_text()
    first = text.split("## Exclusions")[0]
    said = f"Saliency maps vs no explanation, AI wrong (adversarial): accuracy {row['accuracy_more']:.1%} vs"
    assert said in first
    assert first.index("F(") < first.index(said)
    assert f"{row['points']:+.1f} percentage points (95% CI".replace("-", "−") in first
    page = (tmp_path / "report.html").read_text()
    assert found.sentences[0] == found.opening.sentence
    for content in (first, page):
        assert content.index(found.opening.verdict) < content.index("Participants")
    assert page.index(">Contrasts <") < page.index(">Figure 1: ")
    assert "The models have no random effects of images, because the responses have no column item." not in text


def test_a_plan_file_alone_does_not_say_when_it_was_written(tmp_path: Path) -> None:
    """Catches "planned before the data" for any file given as a plan, and "preregistered" where nothing says so."""
    data, manifest = answered(tmp_path / "bundle")
    results.write(data, tmp_path / "file", plan=AnalysisPlan(participants=4))
    results.write(data, tmp_path / "frozen", plan=AnalysisPlan(participants=4), manifest=manifest)
    texts = {name: (tmp_path / name / "report.md").read_text() for name in ("file", "frozen")}
    said = "frozen with this version of the study before its first participant."
    assert {name: said in text for name, text in texts.items()} == {"file": False, "frozen": True}
    assert "reregistered" not in "".join(texts.values())
