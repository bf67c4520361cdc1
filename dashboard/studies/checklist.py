"""What should be in place before a study is opened to participants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import streamlit as st

from dashboard.shared import service
from dashboard.shared.messages import link_guides
from dashboard.studies.workspace_studies import Study, count_finished
from study.plan.preregistration import load_frozen_plan
from study.plan.procedure import procedure_of
from study.plan.studyfiles import is_pilot, name_pilot

LOCAL = ("127.0.0.1", "localhost", "::1")
MADE_UP = ("example.com", "example.net", "example.org", ".example", ".invalid", ".test")
"""Endings of domains that belong to nobody (RFC 2606)."""


class Point(NamedTuple):
    """One point of the list: whether it holds, and what it says."""

    holds: bool
    text: str


def list_points(study: Study, address: str, ways: tuple[str, ...], piloted: int = 0) -> Iterator[Point]:
    """List what should be in place before participants come; nothing here prevents opening the study.

    Parameters
    ----------
    address
        The URL under which this page is open.
    ways
        Ways to log in to the researcher's pages (`study.collection.access.Access.ways`).
    piloted
        Participants who completed the study's pilot.
    """
    assert study.bundle is not None
    manifest = study.bundle.manifest
    procedure = procedure_of(manifest)
    contact = procedure.contact
    yield _judge(not study.has_changed, "The study is built as its file is now", "The file has changed: build it again")
    is_made_up = _is_made_up(contact.email)
    lack = "has the made-up contact of a template" if is_made_up else "does not name all three"
    yield _judge(
        bool(contact.researcher and contact.email and contact.board) and not is_made_up,
        "The consent names a researcher, an e-mail address and the ethics board",
        f"The consent {lack}: set researcher, e-mail address and ethics board on the page Design",
    )
    yield _judge(
        bool(procedure.check.questions),
        "A comprehension check precedes the trials",
        "No question checks whether participants understood the instructions: set [check]",
    )
    plan = load_frozen_plan(manifest)
    yield _judge(
        plan is not None,
        "The analysis plan is frozen with the study" + (f" (SHA-256 {plan.sha256[:12]}…)" if plan else ""),
        "This study was built without an analysis plan: every result will be exploratory",
    )
    yield _judge(
        count_finished(study.versions, "sim") > 0,
        "Simulated participants have completed the study",
        "Nobody has completed the study yet: try it with simulated participants, in the section Simulate",
    )
    if not is_pilot(study.name):
        yield _judge(
            piloted > 0,
            f"{piloted} {'participant has' if piloted == 1 else 'participants have'} completed the pilot",
            "Nobody has completed a pilot: on the page Design, click Pilot",
        )
    yield _judge(
        bool(ways),
        "The researcher's pages need a password or your provider's login",
        "The researcher's pages have no password: python foretell.py password",
    )
    yield _judge_connection(address)


def show_checklist(study: Study) -> None:
    """Draw the list, open where something is missing."""
    ways = service.get_service().access.ways()
    pilot = name_pilot(study.name)
    versions = tuple(version for version in service.get_acting_researcher().studies() if version.name == pilot)
    piloted = count_finished(versions, "live")
    points = list(list_points(study, st.context.url or "", ways, piloted))
    missing = sum(not point.holds for point in points)
    said = f"{missing} of {len(points)} points to do" if missing else "everything is in place"
    title = "Checklist" if study.state == "open" else "Before you open the study"
    with st.expander(f"{title}: {said}", expanded=bool(missing)):
        for point in points:
            mark = ":green[:material/check_circle:]" if point.holds else ":orange[:material/radio_button_unchecked:]"
            st.markdown(f"{mark} {link_guides(point.text)}")


def _judge(holds: bool, yes: str, no: str) -> Point:
    return Point(holds, f"{yes}." if holds else f"{no}.")


def _is_made_up(email: str) -> bool:
    """Whether mail to an address reaches nobody."""
    return email.strip().lower().endswith(MADE_UP)


def _judge_connection(address: str) -> Point:
    parts = urlsplit(address)
    if parts.scheme == "https":
        return Point(True, "The connection is encrypted (HTTPS).")
    if parts.hostname in LOCAL:
        return Point(False, "This address works on this machine only: put the study online (docs/deploy.md).")
    return Point(False, "The connection is not encrypted: put a proxy with a certificate in front (docs/deploy.md).")
