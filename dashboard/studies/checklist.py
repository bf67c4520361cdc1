"""What should be in place before a study is opened to participants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import streamlit as st

from dashboard.shared import links, service
from dashboard.shared.messages import link_guides
from dashboard.studies.workspace_studies import Study, count_finished
from study.bundle import Manifest
from study.plan.preregistration import load_frozen_plan
from study.plan.procedure import Contact, Procedure, procedure_of
from study.plan.studyfiles import is_pilot, name_pilot

LOCAL = ("127.0.0.1", "localhost", "::1")
MADE_UP = ("example.com", "example.net", "example.org", ".example", ".invalid", ".test")
"""Endings of domains that belong to nobody (RFC 2606)."""


class Fix(NamedTuple):
    """Where a point is corrected: a link's label, the page's name (`dashboard.pages.PAGES`) and its query."""

    label: str
    page: str
    query: dict[str, str]


class Point(NamedTuple):
    """One point of the list: whether it holds, what it says, and where it is corrected."""

    holds: bool
    text: str
    fix: Fix | None = None


def list_points(study: Study, address: str, ways: tuple[str, ...], piloted: int = 0) -> Iterator[Point]:
    """List what should be in place before participants come; nothing here prevents opening the study.

    Parameters
    ----------
    address
        The URL under which this page is open.
    ways
        Ways to log in to the researcher's pages (`study.collection.access.logins.Access.ways`).
    piloted
        Participants who completed the study's pilot.
    """
    assert study.bundle is not None
    yield _judge(
        not study.has_changed, "The study is built as its file is now", "The study file has changed. Build it again"
    )
    yield from _judge_design(study, study.bundle.manifest)
    yield from _judge_rehearsals(study, piloted)
    yield _judge(
        bool(ways),
        "The researchers' pages need a password or your provider's login",
        "The researchers' pages have no password. On the server, run `python foretell.py password`",
    )
    yield _judge_connection(address)


def _judge_design(study: Study, manifest: Manifest) -> Iterator[Point]:
    """Judge what is frozen with the study: its contact, comprehension check and plan."""
    procedure, plan = procedure_of(manifest), load_frozen_plan(manifest)
    yield _judge_contact(study, procedure.contact)
    yield _judge(
        bool(procedure.check.questions),
        "A comprehension check precedes the trials",
        "No question checks whether participants understood the instructions. Add a comprehension check",
        _link_design(study, "Procedure"),
    )
    if procedure.sittings is not None:
        yield _judge_sittings(study, procedure)
    yield _judge(
        plan is not None,
        "The analysis plan is frozen with the study" + (f" (SHA-256 {plan.sha256[:12]}…)" if plan else ""),
        "The study has no analysis plan, so every result will be exploratory. Write a plan before you collect",
        _link_design(study, "Plan"),
    )


def _judge_sittings(study: Study, procedure: Procedure) -> Point:
    """Judge whether a service that pays for each sitting gets a code for each."""
    sittings, paid = procedure.sittings, procedure.recruiter.service or procedure.recruiter.complete
    assert sittings is not None
    times = f"{sittings.count} sittings, {sittings.gap_hours} to {sittings.within_hours} hours apart"
    return _judge(
        bool(sittings.codes) or not paid,
        f"{times}: try the later ones in a preview, which does not wait",
        f"{times}, and only the last one gives a completion code. If the service pays for each, set the codes",
        _link_design(study, "Procedure"),
    )


def _judge_rehearsals(study: Study, piloted: int) -> Iterator[Point]:
    """Judge whether simulated participants, and those of a pilot, have completed the study."""
    yield _judge(
        count_finished(study.versions, "sim") > 0,
        "Simulated participants have completed the study",
        "No simulated participant has completed the study yet. Simulate some to test it",
        Fix("Simulate", "studies", {"study": study.name, "section": "Simulate"}),
    )
    if not is_pilot(study.name):
        yield _judge(
            piloted > 0,
            f"{piloted} {'participant has' if piloted == 1 else 'participants have'} completed the pilot",
            "No participant has completed a pilot yet. Make one with Pilot, under Actions in Design",
            _link_design(study, "Study"),
        )


def show_checklist(study: Study) -> int:
    """Draw the list, open where something is missing; return how many points are to do."""
    ways = service.get_service().access.ways()
    pilot = name_pilot(study.name)
    versions = tuple(version for version in service.get_acting_researcher().studies() if version.name == pilot)
    piloted = count_finished(versions, "live")
    points = list(list_points(study, st.context.url or "", ways, piloted))
    missing = sum(not point.holds for point in points)
    said = f"{missing} of {len(points)} points to do" if missing else "everything is in place"
    title = "Checklist" if study.last_version is not None else "Before you open the study"
    with st.expander(f"{title}: {said}", expanded=bool(missing)):
        for point in points:
            mark = ":green[:material/check_circle:]" if point.holds else ":orange[:material/radio_button_unchecked:]"
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(f"{mark} {link_guides(point.text)}", width="content")
                if not point.holds and point.fix is not None:
                    links.show_link(point.fix.label, point.fix.page, place=point.text, **point.fix.query)
    return missing


def _judge(holds: bool, yes: str, no: str, fix: Fix | None = None) -> Point:
    return Point(holds, f"{yes}." if holds else f"{no}.", fix)


def _link_design(study: Study, section: str) -> Fix | None:
    """Link a section of the study's file in Design, if there is a file."""
    query = {} if study.file is None else {"study": study.file.stem, "part": section}
    label = "Make your own copy" if study.is_example else "Open Design"
    return Fix(label, "design", query) if query else None


def _judge_contact(study: Study, contact: Contact) -> Point:
    """Judge whether the consent names whom participants can write to."""
    lacks = describe_lacks(contact)
    return _judge(
        not lacks,
        "The consent names a researcher, an e-mail address and the ethics board",
        f"The consent {lacks}. Complete the contact",
        _link_design(study, "Procedure"),
    )


def describe_lacks(contact: Contact) -> str:
    """Return what a contact lacks, as the end of a sentence about the consent; empty where it is complete."""
    named = {"a researcher": contact.researcher, "an e-mail address": contact.email, "the ethics board": contact.board}
    missing = [what for what, value in named.items() if not value]
    listed = " or ".join(filter(None, [", ".join(missing[:-1]), *missing[-1:]]))
    lacks = [f"does not name {listed}"] if missing else []
    if contact.email.strip().lower().endswith(MADE_UP):
        lacks.append("has the made-up e-mail address of a template")
    return " and ".join(lacks)


def _judge_connection(address: str) -> Point:
    parts = urlsplit(address)
    if parts.scheme == "https":
        return Point(True, "The connection is encrypted (HTTPS).")
    if parts.hostname in LOCAL:
        return Point(False, "This address works on this machine only. To put the study online, see docs/deploy.md.")
    return Point(
        False, "The connection is not encrypted. Put a proxy with a certificate in front, as in docs/deploy.md."
    )
