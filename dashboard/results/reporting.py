"""The report and its parts, to download."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.draws import choose_draws
from dashboard.results.jobs import AnalysisResult
from dashboard.shared import files, live, numbers
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.exploratory.analysis import ROBUSTNESS
from study.analysis.exploratory.bayes import BAYES
from study.bundle import Manifest

WORDS = {
    "report.html": ("Report, one page (HTML)", "text/html"),
    "report.md": ("Report (Markdown)", "text/markdown"),
    "manuscript.docx": ("Draft of method and results (Word)", "application/vnd.openxmlformats"),
    "manuscript.md": ("Draft of method and results (Markdown)", "text/markdown"),
    "table1.tex": ("Table 1 (LaTeX)", "text/plain"),
    "models.json": ("Models (JSON)", "application/json"),
}
SCRIPTED = "The ZIP also has the rows, and scripts in R and Python that compute every planned number again."
REQUESTS = {ROBUSTNESS: "the analyses of robustness", BAYES: "the Bayesian fit"}
"""What a report has on request only."""


def show(result: AnalysisResult, manifest: Manifest | None) -> None:
    """Write the report in the background, then offer its files."""
    numbers.heading("Report", result.label)
    st.caption(
        "Findings, figures and tables, planned separate from exploratory, with the hashes of rows, study, "
        "plan and code and the versions. The same rows, study, plan, code and versions give the same bytes, here and "
        f"with the command `analyze`. {SCRIPTED}"
    )
    requests = [name for name, words in REQUESTS.items() if result.data.task.is_scored and _ask(result, name, words)]
    draws = choose_draws("report_draws") if BAYES in requests else SamplerSettings.draws
    live.draw_when_ready(work.make_report_task(result, manifest, requests=requests, draws=draws), _files, "report")


def _ask(result: AnalysisResult, request: str, words: str) -> bool:
    about = live.format_duration(work.estimate_request(result, request))
    return st.toggle(f"With {words} ({about})", key=f"report_{request}")


def _files(contents: dict[str, bytes]) -> None:
    for name, (label, mime) in WORDS.items():
        files.offer_download(label, partial(contents.__getitem__, name), name, mime)
    files.offer_download(
        f"All {len(contents)} files (ZIP)", lambda: work.zip_files(contents), "results.zip", "application/zip"
    )
