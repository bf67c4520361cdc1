"""The draft of a manuscript says what the plan, the study and the table of contrasts say, in APA style."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import docx
import pandas as pd
import pytest

from study.analysis.planned import analysis as planned
from study.analysis.report import finding
from study.analysis.report.document import mark
from study.analysis.report.finding import HeadlineResult
from study.analysis.report.latex import write_table
from study.analysis.report.manuscript.draft import write_draft
from study.analysis.report.manuscript.findings import style, write_results
from study.analysis.report.manuscript.manuscript import Manuscript
from study.analysis.report.manuscript.word import write_word
from study.analysis.report.report import Report
from study.analysis.responses import reading
from study.bundle import Bundle
from study.plan.preregistration import NESTED, AnalysisPlan
from tests.conftest import write_bundle
from tests.study.analysis.simulated import study

PLAN = AnalysisPlan(models=NESTED, tests="chi_square", participants=8, alpha=0.01, exclusions={"fewest_responses": 20})


@cache
def make_report() -> Report:
    """One participant has 10 responses: the plan's rule excludes those."""
    frame = study(32, 8, 8, seed=11)
    first = frame.index[frame["participant"] == frame["participant"].iloc[0]]
    data = reading.prepare(frame.drop(first[10:]))
    done = planned.execute(data, PLAN)
    return Report(done.analysis, done.data, finding.compute_headline(done.analysis, done.data, done), done)


def make_draft(report: Report) -> Manuscript:
    return write_draft("A study", report.finding, report.plan, report.manifest, report.tables, report.figure[0])


def test_the_method_states_plan_and_data() -> None:
    """Catches a count, an exclusion, a model or a level that is not the plan's, and a reference that nothing cites."""
    draft = make_draft(make_report())
    people, analysis = draft.method["Participants"], draft.method["Analysis"]
    assert "31 participants (7 with no explanation, 8 with saliency maps, 8 with examples and 8 with both" in people
    assert "fewer than 20 responses: 1 participant, 10 responses" in people
    for formula in NESTED.values():
        assert f"`correct ~ {formula} + (1|participant) + (1|category)`" in analysis
    assert "*p* < .01 count as evidence" in analysis
    assert "99% intervals" in analysis
    assert "the study was not named" in draft.method["Design and materials"]
    assert [one.split(",")[0] for one in draft.references] == ["Holm", "Nakagawa"], "tests of intercepts cite no other"


def test_the_design_is_that_of_the_manifest(tmp_path: Path) -> None:
    """Catches a draft that describes another number of trials, network or condition than the study was frozen with."""
    manifest = Bundle(write_bundle(tmp_path, name="shown")).manifest
    report = make_report()
    draft = write_draft("A study", report.finding, None, manifest, report.tables, report.figure[0])
    said = draft.method["Design and materials"]
    assert f"image classifier {manifest.classifier['name']}." in said
    assert (
        f"responded to {len(manifest.trials)} trials of {len({t.target for t in manifest.trials})} categories" in said
    )
    assert f"one of {len(manifest.conditions)} conditions" in said
    assert manifest.texts["question"] in draft.method["Task"]
    assert "was not planned before the data" in draft.method["Analysis"]


def test_results_are_those_of_the_table() -> None:
    """Catches a number or direction that differs from contrasts.csv; each sentence is read back from its text."""
    report = make_report()
    table = report.finding.contrasts
    sentences = [line for line in write_results(report.finding) if " correct, a difference of " in line]
    assert len(sentences) == len(table)
    for line, row in zip(sentences, table.to_dict("records"), strict=True):
        number = [float(one) for one in re.findall(r"-?\d*\.\d+", line.replace("−", "-"))]
        keys = ("accuracy_more", "accuracy_less", "points", "points_low", "points_high", "z")
        scaled = [row[key] * (100 if key.startswith("accuracy") else 1) for key in keys]
        assert number[:6] == pytest.approx(scaled, abs=0.051)
        assert "99% CI [" in line
        assert "*z* = " in line


def test_a_t_test_has_its_degrees_of_freedom() -> None:
    """Catches a t that is written as z, and an interval or p of a cell that has none."""
    given = make_report().finding
    table = given.contrasts.head(2).assign(df=[41.26, 7.04], z=[-2.5, 0.004], p_holm=[0.0004, 1.0])
    table.loc[1, ["points_low", "points_high"]] = float("nan")
    first, second = (line for line in write_results(replace(given, contrasts=table)) if "a difference" in line)
    assert first.endswith("*t*(41) = −2.50, *p*\u00a0<\u00a0.001.")
    assert second.endswith("(no interval, because a cell has only correct or only incorrect responses).")


def test_style() -> None:
    """Catches letters of words in italics, and intervals left in words."""
    said = "A plan (F(2, 96) = 4.61, Holm-corrected p = .024; 95% CI −1.5 to 30.0; χ²(2) = 3.00), t is t"
    assert style(said) == (
        "A plan (*F*(2, 96) = 4.61, Holm-corrected *p*\u00a0=\u00a0.024; 95% CI [−1.5, 30.0]; χ²(2) = 3.00), t is t"
    )


def test_word_has_text_italics_and_tables() -> None:
    """Catches a document that Word would repair: opened again by python-docx, with the cells of the tables."""
    draft = make_draft(make_report())
    assert write_word(draft) == write_word(draft), "the same analysis gives the same bytes"
    document = docx.Document(io.BytesIO(write_word(draft)))
    text = "\n".join(paragraph.text for paragraph in document.paragraphs)
    for part in (*draft.method.values(), *draft.results, *draft.references):
        assert part.replace("`", "").replace("*", "") in text.replace("*", "")
    italics = {run.text for paragraph in document.paragraphs for run in paragraph.runs if run.italic}
    assert {"p", "z", "Note."} <= italics
    assert not any("saliency" in one for one in italics), "the * of a formula is no mark"
    shown = list(document.tables)
    assert [len(table.rows) - 1 for table in shown] == [len(one.table) for one in draft.tables]
    assert [cell.text for cell in shown[0].rows[0].cells] == draft.tables[0].columns


def test_latex_escapes_what_it_would_execute() -> None:
    """Catches a category or term whose name is a command."""
    written = write_table(("Term", "p"), [("a_b & 5% \\input{x} #~^", "< .001"), ("AI × b", "−∞**")])
    assert r"a\_b \& 5\% \textbackslash{}input\{x\} \#\textasciitilde{}\textasciicircum{} & $<$ .001 \\" in written
    assert r"AI $\times$ b & $-\infty$$^{**}$ \\" in written


def test_a_mark_never_lets_html_in() -> None:
    """Catches a name, such as that of an ethics board, that becomes part of the page."""
    assert mark("*p* = <b>`x*y`</b> a * b * c") == ("<em>p</em> = &lt;b&gt;<code>x*y</code>&lt;/b&gt; a * b * c")


def test_simulated_participants_are_called_so() -> None:
    """Catches a manuscript that passes simulated responses off as people's."""
    report = make_report()
    frame = report.data.frame.assign(mode="sim")
    given: HeadlineResult = replace(report.finding, data=replace(report.data, frame=pd.DataFrame(frame)))
    assert (
        "participants are simulated"
        in write_draft("s", given, None, None, report.tables, report.figure[0]).method["Participants"]
    )
