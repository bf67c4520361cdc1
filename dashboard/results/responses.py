"""Choose responses: those collected with a study, or a file with columns mapped by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.results.mapping import choose_mapping, offer_template
from dashboard.results.values import match_values
from dashboard.shared import links, service
from dashboard.shared.collected import study_frames
from dashboard.shared.keys import digest
from dashboard.shared.unblinding import ask_reason
from dashboard.shared.uploads import read_upload
from study.analysis.models.records import InterimAnalysis
from study.analysis.responses import reading as responses
from study.analysis.responses.codes import find_uncoded
from study.analysis.responses.reading import Responses
from study.bundle import Bundle
from study.collection.access.permissions import Permission
from study.plan.preregistration import AnalysisPlan, load_frozen_plan
from study.workspace.tables import mark_missing, parse_table
from study.workspace.workspace import bundle_named, bundles, home, study_name

UPLOAD = "Upload a CSV file"
MOST_MB = 200
"""Of an uploaded file: two million responses."""


@dataclass(frozen=True)
class ChosenResponses:
    """Responses fit for analysis, and the frozen study that they belong to, if it is known."""

    data: Responses
    bundle: Bundle | None

    @property
    def plan(self) -> AnalysisPlan | None:
        """Return the analysis plan that the study was frozen with; None if there was none."""
        return None if self.bundle is None else load_frozen_plan(self.bundle.manifest)

    @property
    def interim_analyses(self) -> tuple[InterimAnalysis, ...] | None:
        """Return the interim analyses made of the study's responses; None if unknown."""
        if self.data.has_simulated:
            return ()
        if self.bundle is None:
            return None
        researcher, manifest = service.get_acting_researcher(), self.bundle.manifest
        if not researcher.may(Permission.SEE_OUTCOMES, manifest.name):
            return None
        return researcher.load_interim_analyses(manifest.study_hash)


def choose(place: str, sources: Sequence[str] = (), label: str = "Responses") -> ChosenResponses | None:
    """Choose the responses of a study or of a file, and check them; None until something is chosen.

    ``place`` begins the names of the widgets in the session and the link; ``sources`` are offered before the others,
    and one of them chosen is None too: the page knows what it means.

    Raises
    ------
    ForetellError
        The responses are not fit for analysis: every fault at once.
    """
    studies = study_frames()
    choice = st.selectbox(label, [*sources, *studies, UPLOAD], key=f"{place}_source", bind="query-params", width=420)
    if choice in sources:
        return None
    if choice == UPLOAD:
        return _file(place)
    collected = studies[choice]()
    if collected.empty:
        st.info("No responses yet. Send the study's link to participants, or simulate some to try the results.")
        with st.container(horizontal=True):
            links.show_link("The link to send", "studies", study=choice)
            links.show_link("Simulate participants", "studies", study=choice, section="Simulate")
            links.show_link("Monitor", "monitor", study=choice)
        return None
    frame = _of_one_version(_of_one_kind(collected, place), place)
    if _is_withheld(frame, choice):
        return None
    rows = pd.util.hash_pandas_object(frame).to_numpy().tobytes()
    data = _prepare_responses(digest(choice, rows, *frame.columns), frame, choice, {})
    bundle = _find_bundle(frame)
    if bundle is not None and not data.has_simulated:  # real participants: only for whom may see outcomes
        data = replace(data, excluded=service.get_acting_researcher().count_exclusions(bundle.study_hash))
    return ChosenResponses(data, bundle)


def _is_withheld(frame: pd.DataFrame, study: str) -> bool:
    """Say why there are no results yet, if so: the study still collects, or one participant has responded."""
    if "live" in set(frame.get("mode", ())) and service.get_acting_researcher().is_blinded(study):
        _offer_unblinding(study)
        return True
    uncoded = next(find_uncoded(frame), "")
    if uncoded:
        st.info(uncoded)
        links.show_link("Code the texts", "coding", study=study)
        return True
    if frame["participant"].nunique() > 1:
        return False
    said = f"{len(frame):,} response{'' if len(frame) == 1 else 's'} of 1 participant so far."
    st.info(f"{said} Models compare participants: results appear once more participants have responded.")
    return True


def _offer_unblinding(study: str) -> None:
    """Draw, in place of the results of a study that still collects, the form that unblinds it."""
    st.info("This study still collects responses, so its results are blinded. They open when it is closed.")
    reason = ask_reason(study)
    if reason is not None:
        service.get_acting_researcher().unblind(study, reason)
        st.rerun()


def _of_one_version(frame: pd.DataFrame, place: str) -> pd.DataFrame:
    """Select the responses to one frozen study; another build of the same name has other trials."""
    if "study_hash" not in frame or frame["study_hash"].nunique() < 2:
        return frame
    counts = frame.groupby("study_hash").agg(responses=("study_hash", "size"), last=("received_at", "max"))
    hashes = list(counts.sort_values("last", ascending=False).index)
    chosen = st.selectbox(
        "Version of the study, latest responses first",
        hashes,
        format_func=lambda name: f"{name[:12]}… ({counts['responses'][name]:,} responses)",
        key=f"{place}_version",
        width=420,
    )
    return frame[frame["study_hash"] == chosen].reset_index(drop=True)


def _of_one_kind(frame: pd.DataFrame, place: str) -> pd.DataFrame:
    """Select participants' responses if there are any; simulated ones otherwise, or on request. Never both."""
    kinds = set(frame["mode"]) if "mode" in frame else set()
    if kinds != {"live", "sim"}:
        return frame
    simulated = st.toggle("Show simulated instead of real participants", key=f"{place}_simulated", bind="query-params")
    return frame[frame["mode"] == ("sim" if simulated else "live")].reset_index(drop=True)


def _find_bundle(frame: pd.DataFrame) -> Bundle | None:
    """Return the frozen study of collected responses."""
    if "study_hash" not in frame or frame.empty:
        return None
    folders = {status.study_hash: status.folder for status in service.get_acting_researcher().studies()}
    folder = folders.get(frame["study_hash"].iloc[0])
    return None if folder is None else Bundle(folder)


def _file(place: str) -> ChosenResponses | None:
    file = st.file_uploader(
        "One row per response",
        type="csv",
        key=f"{place}_file",
        max_upload_size=MOST_MB,
        help="Commas, semicolons or tabs between the columns; decimal points or commas. Empty cells, NA, NaN and nan "
        "are missing values.",
    )
    if file is None:
        st.info("Choose a CSV file with one row per response. Its columns may have other names than the template's.")
        offer_template()
        return None
    raw, missing_words = _parse_file(file.file_id, file)
    mapping = choose_mapping(raw.rename(columns=str), place)
    if mapping is None:
        return None
    matched = match_values(raw, mapping, place)
    if matched is None:
        return None
    bundle = _choose_study(place)
    words = {ours: missing_words[theirs] for ours, theirs in mapping.items() if theirs in missing_words}
    rows = pd.util.hash_pandas_object(matched).to_numpy().tobytes()
    key = digest(file.file_id, *mapping, *mapping.values(), rows)
    return ChosenResponses(_prepare_responses(key, matched, file.name, words), bundle)


def _choose_study(place: str) -> Bundle | None:
    """Choose the study that the file's responses belong to, for its plan and its trials."""
    sees = service.get_acting_researcher().sees
    built = sorted(name for name in {study_name(folder) for folder in bundles(home())} if sees(name))
    if not built:
        return None
    name = st.selectbox(
        "Responses to the study",
        built,
        index=None,
        placeholder="None of the built studies",
        key=f"{place}_of",
        width=420,
        help="Its analysis plan is run as it was frozen, and its trials can be related to the responses.",
    )
    return None if name is None else bundle_named(home(), name)


@st.cache_resource(max_entries=4, show_spinner="Reading the file …")
def _parse_file(key: str, _file: Any) -> tuple[pd.DataFrame, Mapping[str, int]]:  # noqa: ARG001
    return mark_missing(parse_table(read_upload(_file), _file.name))


@st.cache_resource(max_entries=4, show_spinner="Checking the responses …")
def _prepare_responses(
    key: str,  # noqa: ARG001
    _raw: pd.DataFrame,
    _name: str,
    _missing_words: Mapping[str, int],
) -> Responses:
    return responses.prepare(_raw, name=_name, missing_words=_missing_words)
