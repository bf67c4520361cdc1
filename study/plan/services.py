"""Recruitment services: how participants arrive from each of them, and how they return."""

from __future__ import annotations

import re
from typing import NamedTuple

FILLED = ("{code}", "{id}")
"""Placeholders of the link back: the completion code, and the participant's own id at the service."""
_PLACEHOLDER = re.compile(r"\$?\{+%?[^{}]*%?\}+|%[A-Za-z][A-Za-z_]{2,}%|\bX{4,}\b")
"""What the services' own documentation writes for what is to be filled in; ``%C3%A9`` is none."""


class RecruitmentService(NamedTuple):
    """A recruitment service, by its own documentation.

    Attributes
    ----------
    title
        Its name.
    arrival
        What is added to the participants' link, as it is entered at the service: it fills in its placeholders.
    link_back
        The link back (`[recruiter] url`); "" where participants hand in a code instead, or where it has no pattern.
    remark
        What else has to be known.
    """

    title: str
    arrival: str
    link_back: str
    remark: str


SERVICES = {
    "prolific": RecruitmentService(
        "Prolific",
        "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
        "https://app.prolific.com/submissions/complete?cc={code}",
        "Enter the codes of the study at Prolific under complete, screened and declined.",
    ),
    "sona": RecruitmentService(
        "SONA",
        "id=%SURVEY_CODE%",
        "https://SCHOOL.sona-systems.com/webstudy_credit.aspx?experiment_id=NUMBER&credit_token=TOKEN&survey_code={id}",
        "Copy the client-side completion URL of the study at SONA and write {id} in place of XXXX.",
    ),
    "mturk": RecruitmentService(
        "Amazon Mechanical Turk",
        "workerId=WORKER&assignmentId=ASSIGNMENT&hitId=HIT",
        "",
        "Leave the link back empty: workers copy the code and hand it in with the HIT.",
    ),
    "connect": RecruitmentService(
        "CloudResearch Connect",
        "participantId=PARTICIPANT&assignmentId=ASSIGNMENT&projectId=PROJECT",
        "",
        "Copy the Redirect URL of the project: Foretell offers it to participants who completed the study, and to no "
        "others.",
    ),
}


def find_link_fault(url: str, codes: tuple[str, ...]) -> str | None:
    """Say what is wrong with a link back and the codes that belong to it, if anything."""
    unknown = [name for name in _PLACEHOLDER.findall(url) if name not in FILLED]
    if unknown:
        return (
            f"The link back contains {unknown[0]}, which nothing fills in. Write {{code}} for the completion code and "
            "{id} for the participant's own id at the service, such as SONA's survey code."
        )
    stray = url and next((code for code in codes if code and "{code}" not in url), "")
    if stray:
        return (
            f"The link back has no place for the code {stray}: everyone would return with the same link. Write "
            "{code} in the link where the code goes, or remove the code."
        )
    if re.search(r"[?&]cc=(?!\{code\})", url):
        return "The link back contains a code of its own. Write {code} in its place, and the code under complete."
    return None
