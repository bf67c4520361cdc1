"""The report as a page that is read, printed and attached to a paper."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

from study.analysis.exploratory import slopes
from study.analysis.planned import nested
from study.analysis.planned.nested import RatioTest
from study.analysis.report import composition, files, finding, results, verdicts
from study.analysis.report.report import Report
from study.analysis.responses import reading as responses
from study.plan.preregistration import NESTED, AnalysisPlan
from tests.study.analysis.simulated import analyze_as_in_the_paper, study, study_with_images
from tests.study.analysis.test_report import answered

PRINTED = 680
"""Width of an A4 page in portrait without its margins, px."""


@pytest.fixture(scope="module")
def page_of_a_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a study that still collects, with response times and trials."""
    folder = tmp_path_factory.mktemp("report")
    data, manifest = answered(folder / "bundle")
    frame = data.frame.assign(rt_ms=900.0, received_at="2026-05-03T10:00:00.000+00:00", mode="sim")
    frame.loc[0, "received_at"] = "2026-05-01T09:00:00.000+00:00"
    results.write(responses.prepare(frame), folder / "out", plan=AnalysisPlan(participants=40), manifest=manifest)
    return folder / "out" / "report.html"


def read(page: Path) -> str:
    """The page's words and tags, without the figures."""
    return re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S)


def test_the_study_comes_first_then_verdicts_then_contrasts(page_of_a_study: Path) -> None:
    """Catches a report that names neither the study nor its dates, and verdicts that are lost among equal lines."""
    said = read(page_of_a_study)
    assert "<h1>demo: do explanations help participants predict the AI?</h1>" in said
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", said))
    assert facts["Study"].startswith("demo, version ")
    assert facts["Dates of the responses (UTC)"] == "1 May 2026 to 3 May 2026"
    assert facts["Participants"].startswith("24 (no explanation: 6, saliency maps: 6, examples: 6, both")
    assert facts["Status"].startswith("Collection is not complete: 6 of the 40 planned participants")
    order = [
        "Simulated participants: not",
        'class="opening">',
        "<dt>Status",
        "<p>There is",
        "With random intercepts",
        ">Contrasts <",
    ]
    places = [said.index(part) for part in order]
    assert places == sorted(places)


def test_contrasts_have_the_columns_and_the_rounding_of_the_page(page_of_a_study: Path) -> None:
    """Catches log-odds in place of accuracies, and a caption that names the columns of the file."""
    said = read(page_of_a_study)
    section = said[said.index(">Contrasts <") : said.index(">Figure 1: ")]
    assert re.findall(r"<th[^>]*>([^<]*)</th>", section.partition("<details>")[0]) == [
        *("Contrast", "Accuracy 1", "Accuracy 2", "% points", "95% CI from", "to", "p (Holm)"),
    ]
    (row, *_) = re.findall(r"<tr><td class=\"text\">Saliency maps vs.*?</tr>", section)
    forms = (r"\d+\.\d%", r"\d+\.\d%", r"−?\d+\.\d", r"−?\d+\.\d", r"−?\d+\.\d", r"\.\d{3}|&[lg]t; \.\d{3}")
    for value, form in zip(re.findall(r"<td>(.*?)</td>", row), forms, strict=True):
        assert re.fullmatch(form, value), (value, form)
    assert "p_holm" not in said
    assert "p (Holm) is corrected for the number of contrasts" in section


def test_the_verdict_is_that_with_slopes_and_the_paper_is_beneath(tmp_path: Path) -> None:
    """Catches evidence of the paper's models in bold, which the report's own check takes back pages later."""
    data = responses.prepare(study_with_images(5, people=24))
    analysis = nested.analyze(data)
    files.write(Report(analysis, data, finding.compute_headline(analysis, data, None)), tmp_path)
    table = slopes.compare(data, analysis)
    text, page = (tmp_path / "report.md").read_text(), read(tmp_path / "report.html").replace("\u00a0", " ")
    paper = analyze_as_in_the_paper(data)
    for verdict, ours, theirs in zip(
        verdicts.list_verdicts(analysis, data, table), analysis.tests, paper.tests, strict=True
    ):
        assert f"{verdict.main} {verdict.beneath}" in text
        assert page.index(verdict.beneath.replace("<", "&lt;")) > page.index(verdict.main.replace("<", "&lt;"))
        assert verdict.main == verdicts.describe_test(ours)
        assert "F(" in verdict.main
        assert f"as in the paper: χ²({theirs.df}) = {theirs.chisq:.2f}, p " in verdict.beneath


def test_a_plan_as_in_the_paper_is_reported_as_planned_beneath(tmp_path: Path) -> None:
    """Catches a frozen plan that is passed over, and one whose tests without slopes are the verdict."""
    data = responses.prepare(study_with_images(5, people=24))
    plan = AnalysisPlan(participants=4, models=NESTED, tests="chi_square")
    said = results.write(data, tmp_path, plan=plan)
    default, paper = nested.analyze(data), analyze_as_in_the_paper(data)
    for verdict, ours, theirs in zip(said.verdicts, default.tests, paper.tests, strict=True):
        assert f"({verdicts.UNPLANNED}: {verdicts.describe_numbers(ours)})" in verdict.main
        assert verdict.beneath.startswith("As planned, with random intercepts only, as in the paper: χ²(")
        assert f"= {theirs.chisq:.2f}" in verdict.beneath
    alone = verdicts.list_verdicts(said.analysis, data, None)
    assert [one.main for one in alone] == [None, None]  # no verdict until the slopes are fitted


@pytest.mark.parametrize(
    ("with_slopes", "paper", "said"),
    [
        (0.02, 0.01, "χ²(2) = 9.00, p = .010 (exploratory): there is evidence without random slopes too."),
        (0.096, 0.01, "p = .010 (exploratory): there is evidence only if participants, categories and images do not"),
        (0.02, 0.2, "p = .200 (exploratory): there is no clear evidence without random slopes."),
        (0.096, 0.2, "p = .200 (exploratory): there is no clear evidence without random slopes either."),
    ],
)
def test_four_cases_of_a_verdict(with_slopes: float, paper: float, said: str) -> None:
    main = RatioTest("null", "explanation", 4.69, 2, with_slopes / 2, 30.0, with_slopes, 2.3)
    other = RatioTest("null", "explanation", 9.0, 2, paper)
    verdict = verdicts._state(main, other, 0.05, "respond", planned_without=False)
    assert verdict.main.startswith("There is evidence") == (with_slopes < 0.05)
    assert "F(2, 30) = 2.30, Holm-corrected p = " in verdict.main
    assert said in verdict.beneath


def test_a_table_of_verdicts_notes_the_test_that_slopes_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches evidence without slopes that nothing takes back, and a note on tests that agree."""
    data = responses.prepare(study_with_images(5, people=24))
    analysis = nested.analyze(data)
    ours = [RatioTest("null", "explanation", 4.69, 2, 0.05, 30.0, 0.096, 2.3), RatioTest("a", "b", 1.0, 1, 0.5)]
    theirs = [RatioTest("null", "explanation", 9.0, 2, 0.011), RatioTest("a", "b", 1.0, 1, 0.5)]
    monkeypatch.setattr(slopes, "list_tests", lambda _, with_slopes=False: ours if with_slopes else theirs)
    monkeypatch.setattr(slopes, "count_contrasts", lambda *_: None)
    made = verdicts.tabulate_verdicts(analysis, data, pd.DataFrame(), 0.05)
    assert made.cells.iloc[0].tolist() == [
        "Effect of explanations",
        "No clear evidence: F(2, 30) = 2.30, Holm-corrected p = .096",
        "χ²(2) = 9.00, p = .011",
    ]
    assert made.notes == [
        "Effect of explanations: there is evidence only if participants, categories and images do not differ in these "
        "effects."
    ]
    noted = verdicts.tabulate_verdicts(analysis, data, pd.DataFrame(), 0.0146).notes
    assert noted[0] == "Tested at alpha = .0146."


def test_contrasts_are_counted_with_and_without_random_slopes() -> None:
    """Catches a contrast that is counted with slopes alone, and a test that is counted as a contrast."""
    p = {"a - none": (0.01, 0.2), "b - none": (0.01, 0.03), "c - none": (0.2, 0.01), "d - none": (float("nan"), 0.01)}
    rows = [(name, value, 5.0) for name, pair in p.items() for value in pair] + [("explanation vs null", 0.01, None)]
    table = pd.DataFrame(rows, columns=["result", "p_holm", "points"])
    said = "Contrasts with p (Holm) below .05: 2 of 4 with random slopes (A vs no explanation, all trials; B vs no "
    said += "explanation, all trials); with random intercepts only, as in the paper, 3 of 4."
    assert slopes.describe_contrasts(table, 0.05) == said
    assert slopes.describe_contrasts(table, 0.005) is None


@pytest.mark.parametrize("dates", [None, ("2026-05-03", "2026-05-03")])
def test_dates_are_those_of_the_responses(dates: tuple[str, str] | None) -> None:
    """Also of none, or of a file with other words in that column; catches the day on which the report is written."""
    frame = study(24, 8, 6, seed=5)
    data = responses.prepare(frame.assign(received_at="2026-05-03T10:00:00.000+00:00") if dates else frame)
    assert data.dates == dates
    assert composition.list_facts(data, None, None).get("Dates of the responses (UTC)") == (dates and "3 May 2026")
    assert responses.prepare(frame.assign(received_at="yesterday")).dates is None


@pytest.mark.browser
def test_no_table_is_wider_than_the_page_on_screen_or_paper(chromium: Browser, page_of_a_study: Path) -> None:
    """Catches main numbers that are cut off at the right; on a phone a table scrolls in its own box."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.goto(page_of_a_study.as_uri())
    page.wait_for_selector("#figure0 .scatterlayer .point")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert list_cut_tables(page) == []
    page.set_viewport_size({"width": PRINTED, "height": 1000})
    page.emulate_media(media="print")
    assert list_cut_tables(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == PRINTED
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.documentElement.scrollWidth == 390")  # the figures follow
    page.close()


def list_cut_tables(page: Page) -> list[str]:
    """List the tables that are wider than their boxes, by the beginning of their text."""
    cut: list[str] = page.evaluate(
        "[...document.querySelectorAll('.table')]"
        ".filter(box => box.firstElementChild.getBoundingClientRect().width > box.clientWidth + 1)"
        ".map(box => box.textContent.trim().slice(0, 60))"
    )
    return cut
