"""Results: choose responses, look at their quality first, then at what they say."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import streamlit as st

from core.errors import ForetellError
from dashboard import door
from dashboard.widgets.messages import escaped
from study.analysis import bootstrap, figures, nested, report, responses
from study.analysis.nested import NestedAnalysis
from study.analysis.responses import Responses

UPLOAD = "A CSV file of mine"
SEED = 0


def study_frames() -> Mapping[str, Callable[[], pd.DataFrame]]:
    """The collected studies by name: the one place where this page meets the service."""
    service = door.service()
    names = dict.fromkeys(status.name for status in service.studies() if status.sessions)
    return {name: functools.partial(service.responses, name, ("live", "sim")) for name in names}


def page() -> None:
    """The whole page."""
    st.title("Results", anchor=False)
    st.caption(
        "What was collected, whether explanations changed how well people foretell the AI, and how sure that is."
    )
    try:
        data = _chosen()
        if data is None:
            st.info("Choose a CSV file with one row per answer.")
            return
        _quality(data)
        with st.spinner("Fitting the three mixed models …"):
            analysis, numbers = _analyzed(_key(data), data)
    except ForetellError as error:
        st.error(escaped(str(error)))
        return
    _findings(analysis, numbers, data)


def _chosen() -> Responses | None:
    """Responses of a study or of a file, checked."""
    studies = study_frames()
    choice = st.selectbox("Responses", [*studies, UPLOAD], key="results_source", bind="query-params", width=420)
    if choice != UPLOAD:
        return responses.prepare(_of_one_version(_of_one_kind(studies[choice]())), name=choice)
    file = st.file_uploader("One row per answer", type="csv", key="results_file")
    if file is None:
        return None
    raw = responses.parse(file.getvalue(), file.name)
    return responses.prepare(raw, _mapping([str(column) for column in raw.columns]), name=file.name)


def _of_one_version(frame: pd.DataFrame) -> pd.DataFrame:
    """Answers to one frozen study; another build of the same name has other trials and is another study."""
    if "study_hash" not in frame or frame["study_hash"].nunique() < 2:
        return frame
    counts = frame.groupby("study_hash").agg(answers=("study_hash", "size"), last=("received_at", "max"))
    hashes = list(counts.sort_values("last", ascending=False).index)
    chosen = st.selectbox(
        "Version of the study, the one answered last first",
        hashes,
        format_func=lambda name: f"{name[:12]}… ({counts['answers'][name]:,} answers)",
        key="results_version",
        width=420,
    )
    return frame[frame["study_hash"] == chosen].reset_index(drop=True)


def _of_one_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """Participants' answers where there are any; simulated people's otherwise, or when asked for. Never both."""
    kinds = set(frame["mode"]) if "mode" in frame else set()
    if kinds != {"live", "sim"}:
        return frame
    simulated = st.toggle("Show simulated people instead of participants", key="results_simulated")
    return frame[frame["mode"] == ("sim" if simulated else "live")].reset_index(drop=True)


def _mapping(columns: list[str]) -> dict[str, str]:
    """Which column of the file is which of ours, by select boxes."""
    complete = set(responses.REQUIRED) <= set(columns)
    with st.expander("Columns", expanded=not complete):
        chosen = {
            ours: st.selectbox(
                ours, columns, index=columns.index(ours) if ours in columns else None, key=f"results_column_{ours}"
            )
            for ours in responses.REQUIRED
        }
    return {ours: theirs for ours, theirs in chosen.items() if theirs is not None}


def _key(data: Responses) -> str:
    """One SHA-256 for everything the analysis depends on."""
    return hashlib.sha256("\n".join([data.sha256, str(data.dropped), *data.messages]).encode()).hexdigest()


@st.cache_data(max_entries=8, show_spinner=False)
def _analyzed(key: str, _payload: Responses) -> tuple[NestedAnalysis, pd.DataFrame]:  # noqa: ARG001
    """The models and the numbers of Figure 1."""
    return nested.analyze(_payload), bootstrap.accuracy(_payload.frame, rng=np.random.default_rng(SEED))


def _quality(data: Responses) -> None:
    """What was collected, before any result."""
    for message in data.messages:
        st.warning(message)
    counts = {
        "Participants": data.frame["participant"].nunique(),
        "Answers": len(data.frame),
        "Target categories": data.frame["category"].nunique(),
        "Rows left out": data.dropped,
    }
    grid = st.grid(len(counts), min_column_width=130)
    for label, count in counts.items():
        grid.metric(label, f"{count:,}")
    st.dataframe(data.quality(), hide_index=True, key="results_quality")


def _findings(analysis: NestedAnalysis, numbers: pd.DataFrame, data: Responses) -> None:
    """Figure 1, the tests in words, Table 1, and what to know before believing them."""
    for test in analysis.tests:
        st.markdown(f"**{report.test_sentence(test)}**")
    for name, model in analysis.models.items():
        for message in model.messages:
            st.warning(f"Model {name}: {message}")
    st.plotly_chart(figures.draw(numbers, simulated=data.simulated), key="results_figure")
    st.caption("Mean accuracy and 95 % bootstrap intervals over participants. The dotted line is guessing.")
    st.subheader("Table 1: the interaction model", anchor=False)
    _table(report.table(analysis.models["interaction"]))
    _downloads(analysis)


def _table(table: pd.DataFrame) -> None:
    """Table 1 with p as articles print it."""
    p = [report.p_text(None if pd.isna(value) else float(value)) for value in table["p"]]
    numbers = {name: st.column_config.NumberColumn(format="%.3f") for name in ("estimate", "se", "z", "odds_ratio")}
    st.dataframe(
        table.assign(p=p),
        hide_index=True,
        height="content",
        column_config={**numbers, "p": st.column_config.TextColumn(alignment="right"), "stars": " "},
        key="results_table",
    )


def _downloads(analysis: NestedAnalysis) -> None:
    model = analysis.models["interaction"]
    files = {
        "Table 1 (CSV)": (report.table(model).to_csv(index=False), "table1.csv", "text/csv"),
        "Table 1 (LaTeX)": (report.latex(model), "table1.tex", "text/plain"),
        "Models (JSON)": (json.dumps(analysis.as_dict(), indent=2), "models.json", "application/json"),
    }
    with st.container(horizontal=True):
        for label, (content, name, mime) in files.items():
            st.download_button(label, content, name, mime, on_click="ignore", icon=":material/download:")
