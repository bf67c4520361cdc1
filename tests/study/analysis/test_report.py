"""What is handed over says what was found, as text."""

from __future__ import annotations

import html
import io
import json
import math
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser

from study.analysis.exploratory import cognitive, crosschecks
from study.analysis.exploratory.analysis import ExploratoryResult
from study.analysis.models import sentences
from study.analysis.models.records import Coefficient, MixedModel
from study.analysis.planned import nested
from study.analysis.planned.nested import RatioTest
from study.analysis.report import figures, finding, model_table, results, verdicts
from study.analysis.report import files as files_of
from study.analysis.report.report import Report
from study.analysis.responses import reading as responses
from study.bundle import Bundle, Manifest
from study.plan.preregistration import AnalysisPlan
from study.plan.simulated_participants import THEORIES
from tests.browser.contrast import find_faint_words
from tests.conftest import write_bundle
from tests.study.analysis.simulated import study

MODEL = MixedModel(
    formula="correct ~ ...",
    coefficients=(
        Coefficient("(Intercept)", -1.06, 0.14, -7.57, 4e-14),
        Coefficient("trial_typestd_incorrect:saliency", -0.294, 0.13, -2.26, 0.0238),
        Coefficient("examples", -0.001, 0.12, -0.008, 0.9936),
        Coefficient("trial_typestd_correct", 25.0, None, None, None),
        Coefficient("saliency", -25.0, None, None, None),
    ),
    random=(),
    loglik=-1.0,
    df=5,
    n=10,
    converged=False,
    diverging={"trial_typestd_correct": 1, "saliency": 0},
)


def write(
    analysis: nested.NestedAnalysis, data: responses.Responses, out: Path, **further: Any
) -> list[ExploratoryResult]:
    """Write the report of an analysis without a plan."""
    return files_of.write(Report(analysis, data, finding.compute_headline(analysis, data, None), **further), out)


@pytest.mark.parametrize(
    ("p", "text", "mark"),
    [
        (None, "–", ""),
        (0.0, "< .001", "***"),
        (0.00099, "< .001", "***"),
        (0.001, ".001", "**"),
        (0.0099, ".010", "**"),
        (0.0238, ".024", "*"),
        (0.05, ".050", ""),
        (0.9996, "> .999", ""),
    ],
)
def test_p_values(p: float | None, text: str, mark: str) -> None:
    assert (sentences.p_text(p), model_table.stars(p)) == (text, mark)


def test_latex() -> None:
    lines = model_table.latex(MODEL).splitlines()
    assert lines[1] == r"\toprule"
    assert lines[4] == r"(Intercept) & $-$1.06$^{***}$ & 0.14 & $-$7.57 & $<$ .001 \\"
    assert lines[5] == r"AI wrong (standard) $\times$ saliency & $-$0.29$^{*}$ & 0.13 & $-$2.26 & .024 \\"
    assert lines[6] == r"examples & 0.00 & 0.12 & $-$0.01 & .994 \\"
    assert lines[7] == r"AI right & $\infty$ & -- & -- & -- \\"
    assert lines[8] == r"saliency & -- & -- & -- & -- \\"


def test_table_has_infinite_estimates_as_such() -> None:
    table = model_table.table(MODEL).set_index("term")
    assert table.loc["AI right", "estimate"] == math.inf
    assert math.isnan(table.loc["saliency", "estimate"])
    assert table.loc[["AI right", "saliency"], ["se", "z", "p"]].isna().all().all()
    assert table.loc["(Intercept)", "odds_ratio"] == pytest.approx(0.3465, abs=1e-4)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (
            RatioTest("null", "explanation", 45.37, 2, 1.4e-10),
            "There is evidence that explanations change how often participants predict the AI correctly "
            "(χ²(2) = 45.37, p < .001).",
        ),
        (RatioTest("null", "explanation", 3.0, 2, 0.223), "There is no clear evidence that"),
        (RatioTest("null", "explanation", 3.0, 2, 0.223), "p = .223"),
        (RatioTest("explanation", "interaction", 0.0, 0, None), "These data cannot say whether"),
    ],
)
def test_sentences(test: RatioTest, said: str) -> None:
    assert said in verdicts.describe_test(test)


def test_files(tmp_path: Path) -> None:
    frame = study(32, 8, 8, seed=11)
    cell = (frame["trial_type"] == "std_correct") & (frame["saliency"] == 1) & (frame["examples"] == 1)
    frame.loc[cell, "correct"] = 1
    data = responses.prepare(frame)
    analysis = nested.analyze(data)
    out = tmp_path / "new" / "results"
    write(analysis, data, out, seed=1)
    (out / "report.md").write_text("stale")
    written = write(analysis, data, out, seed=1)
    names = {"models.json", "table1.csv", "table1.tex", "lrt.csv", "models.csv", "contrasts.csv", "figure1.csv"}
    names |= {"figure1.html", "report.md", "report.html", "random_effects.csv", "rows.csv", "analysis.R", "analysis.py"}
    names |= {"manuscript.md", "manuscript.docx", "contrasts.tex", "models.tex", "random_effects.tex"}
    drawn = ("figure1", "contrasts", "exploratory_detection", "exploratory_projection", "exploratory_learning")
    names |= {f"{name}.svg" for name in drawn}
    explored = {
        f"exploratory_{name}.csv"
        for name in (
            "slopes",
            "crosschecks",
            "means",
            "pairs",
            "detection",
            "detection_differences",
            "projection",
            "learning",
            "categories",
            "modes",
        )
    }
    assert {f"exploratory_{one.name}.csv" for one in written} == explored
    assert {path.name for path in out.iterdir()} == names | explored
    assert json.loads((out / "models.json").read_text()) == analysis.as_dict()
    table = pd.read_csv(out / "table1.csv")
    assert len(table) == 12
    assert np.isinf(table["estimate"]).sum() == 1
    said = (out / "report.md").read_text()
    for part in (
        data.sha256,
        "- Participants: 32 (no explanation: 8, saliency maps: 8, examples: 8, both explanations: 8)",
        "Separation: AI right with both explanations",
        "χ²(2)",
        "F(2, ",
    ):
        assert part in said


@pytest.mark.browser
def test_figure_opens_alone_and_asks_nobody(chromium: Browser, tmp_path: Path) -> None:
    """Catches a page that fetches plotly.js, or one that draws nothing."""
    data = responses.prepare(study(seed=11))
    write(nested.analyze(data), data, tmp_path)
    address = (tmp_path / "figure1.html").as_uri()
    asked: list[str] = []
    page = chromium.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_selector(".scatterlayer .point")
    points = page.locator(".scatterlayer .point").count()
    page.close()
    assert asked == [address]
    assert points == 12


def test_with_a_plan_what_was_not_planned_is_labelled(tmp_path: Path) -> None:
    data = responses.prepare(study(32, 8, 8, seed=11))
    plan = AnalysisPlan(exclusions={"fewest_responses": 5}, participants=8)
    results.write(data, tmp_path / "planned", plan=plan)
    page = (tmp_path / "planned" / "report.html").read_text()
    models = ("Nested models", "Table 1: the interaction model", "Random effects of the interaction model")
    titles = ("Contrasts", figures.TITLES[True], *models, "Exclusions")
    assert re.findall(r"<h2 id=[^>]*>([^<]*) <span class=\"label\">([^<]*)</span>", page) == [
        *[(name, "planned") for name in titles],
        ("With and without random slopes", "exploratory"),
        ("Robustness checks: GEE and Bayesian fits", "exploratory"),
        ("Estimated accuracy", "exploratory"),
        ("All pairs of conditions", "exploratory"),
        ("Signal detection: when the AI errs", "exploratory"),
        ("Signal detection: differences between conditions", "exploratory"),
        ("Belief projection", "exploratory"),
        ("Learning over trials", "exploratory"),
        ("Categories", "exploratory"),
        ("Categories and images: deviations", "exploratory"),
        ("Method", "draft"),
    ]
    for part in (plan.sha256, data.sha256, "fewer than 5 responses", "The planned 8 participants", version("glmm")):
        assert part in page
        assert part in (tmp_path / "planned" / "report.md").read_text()
    assert "<td>&lt; .001</td>" in page  # escaped once
    for said in ("<th>p (Holm)</th>", '<td class="text">Saliency maps vs no explanation, AI wrong (adversarial)</td>'):
        assert said in page, "names and codes of the files are in words"
    tables = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert not re.findall(r"<t[hd]>[^<]*(?:std_|adv_|p_holm|accuracy_)[^<]*<", tables)
    effects = pd.read_csv(tmp_path / "planned" / "contrasts.csv").iloc[0]
    assert f"<td>{effects['accuracy_more']:.1%}</td>" in page
    assert "Not shown. Calibration of confidence: The responses have no confidence ratings" in page
    found = results.write(data, tmp_path / "interim", plan=plan.model_copy(update={"participants": 40}))
    said = "Collection is not complete: 8 of the 40 planned participants in the smallest condition (after exclusions)."
    assert found.interim == said
    assert "planned analysis, interim data" in (tmp_path / "interim" / "report.html").read_text()
    results.write(data, tmp_path / "free")
    free = (tmp_path / "free" / "report.html").read_text()
    assert "everything here is exploratory" in free
    assert 'class="label">planned' not in free


@pytest.mark.browser
def test_the_page_opens_alone_and_asks_nobody(chromium: Browser, tmp_path: Path) -> None:
    """Catches a figure without its library, a request to anybody, faint words, and simulated participants who are
    named only at the end."""
    frame = study(32, 8, 8, seed=11).assign(mode="sim")
    results.write(responses.prepare(frame), tmp_path, plan=AnalysisPlan())
    asked: list[str] = []
    page = chromium.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "report.html").as_uri())
    page.wait_for_selector("#figure0 .scatterlayer .point")
    page.wait_for_selector("#figure10 .scatterlayer .point")
    assert page.locator("h1 + p").inner_text().startswith("Simulated participants: not evidence")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert find_faint_words(page) == []
    page.close()
    assert asked == [(tmp_path / "report.html").as_uri()]


def test_text_of_a_study_is_no_code_of_the_page(tmp_path: Path) -> None:
    """Catches a value that reaches the page as HTML: class names come from images and models of anybody."""
    evil = "<script>a|b</script>"
    data = responses.prepare(study(32, 4, 8, seed=11).replace({"category": {"c0": evil}}))
    results.write(data, tmp_path)
    page, text = (tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()
    assert evil not in page
    effects = (pd.read_csv(tmp_path / "exploratory_modes.csv")["level"] == evil).sum()
    assert effects > 0
    assert page.count(f'<td class="text">{html.escape(evil)}</td>') == 3 + effects  # 3: one for each trial type
    assert text.count("| <script>a\\|b</script> | ") == 3 + effects  # and no further column


def answered(folder: Path) -> tuple[responses.Responses, Manifest]:
    """A study of 12 trials whose explanations differ, and 24 people who answered it."""
    manifest = Bundle(write_bundle(folder, name="demo", trials=12)).manifest
    facts = [{"teaching": {"p_learner": k / 12, "gain": k / 6 - 1}, "relevance": k / 24} for k in range(12)]
    trials = tuple(t.model_validate(t.model_dump() | new) for t, new in zip(manifest.trials, facts, strict=True))
    manifest = manifest.model_copy(update={"trials": trials})
    rng = np.random.default_rng(2)
    rows = [
        {
            "participant": f"p{person}",
            "item": trial.id,
            "category": trial.target,
            "trial_type": trial.trial_type,
            "saliency": person % 2,
            "examples": person // 2 % 2,
            "correct": int(rng.random() < 0.6),
        }
        for person in range(24)
        for trial in trials
    ]
    return responses.prepare(pd.DataFrame(rows)), manifest.model_copy(update={"study_hash": manifest.compute_hash()})


def test_cross_checks_trials_and_theories_are_in_every_form(tmp_path: Path) -> None:
    """As page, text and files; catches a measure that reached the page only, or numbers of another fit."""
    data, manifest = answered(tmp_path / "bundle")
    analysis = nested.analyze(data)
    write(analysis, data, tmp_path / "out", manifest=manifest)
    files = {path.name: path.read_text() for path in (tmp_path / "out").iterdir() if path.suffix != ".docx"}
    checks = pd.read_csv(io.StringIO(files["exploratory_crosschecks.csv"]))
    estimates = [c.estimate for c in analysis.models["interaction"].coefficients]
    np.testing.assert_allclose(checks["mixed"], estimates, rtol=1e-12)
    cells = pd.read_csv(io.StringIO(files["exploratory_overlay.csv"]))
    known = {trial.id: trial for trial in manifest.trials}
    best = min((cognitive.fit(data.frame, known, name) for name in THEORIES), key=lambda fitted: fitted.aic)
    pd.testing.assert_frame_equal(cells, cognitive.overlay(data.frame, known, best))
    titles = ["Robustness checks: GEE and Bayesian fits", "Trials and their explanations", "Theories of participants"]
    for title in (
        *titles,
        "Participants and the best theory",
        "Trials by the learner's probability of the AI's prediction",
    ):
        assert f"### {title}" in files["report.md"]
        assert f">{title} <" in html.unescape(files["report.html"])
    first = cells.iloc[0]
    assert f"| {first['cell']} | {first['responses']} | {first['people']:.1%} | " in files["report.md"]
    assert "48 rows in `exploratory_items_p_learner.csv`." in files["report.md"]
    assert all(manifest.study_hash in files[name] for name in ("report.md", "report.html"))
    assert all(sentence in files["report.md"] for sentence in crosschecks.EXPLANATIONS.values())


def test_same_seed_same_files(tmp_path: Path) -> None:
    """Also of a study that is known, with everything on its page; catches what hangs on the clock or on an order."""
    data, manifest = answered(tmp_path / "bundle")
    analysis = nested.analyze(data)
    for name in "ab":
        write(analysis, data, tmp_path / name, seed=3, manifest=manifest)
    first, again = (sorted((tmp_path / name).iterdir()) for name in "ab")
    assert [path.name for path in first] == [path.name for path in again]
    for a, b in zip(first, again, strict=True):
        assert a.read_bytes() == b.read_bytes(), a.name
