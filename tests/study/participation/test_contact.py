"""Whom a participant may write to: what the study file says, what is agreed to, what is left out."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from pydantic import ValidationError

from study.bundle import Bundle
from study.locales import CATALOGUES
from study.plan.procedure import Contact, Procedure
from study.plan.texts import contact
from study.service import Service
from tests.study.participants import MakeBundle, query

WHOLE = {"researcher": "Dr Ada", "email": "ada@example.org", "board": "Board", "approval": "7/21"}


@pytest.mark.parametrize(
    ("named", "lines", "email"),
    [
        ({}, [], ""),
        ({"researcher": "Dr Ada"}, ["Responsible for this study: Dr Ada."], ""),
        ({"approval": "7/21"}, ["Ethics approval: 7/21."], ""),
        ({"email": "a@b.org"}, ["Questions or concerns? Write to"], "a@b.org"),
        (
            WHOLE,
            ["Responsible for this study: Dr Ada.", "Ethics approval: Board, 7/21.", "Questions or concerns? Write to"],
            "ada@example.org",
        ),
    ],
)
def test_what_is_left_out_is_not_mentioned(
    bundle: MakeBundle, named: dict[str, str], lines: list[str], email: str
) -> None:
    """Catches "Ethics approval: , 7/21" and a sentence that ends with no address."""
    manifest = Bundle(bundle(config={"contact": named})).manifest
    assert contact(manifest) == {"lines": lines, "email": email}


def test_who_agrees_agrees_to_what_was_shown(service: Service, bundle: MakeBundle) -> None:
    """Catches a consent whose hash leaves out who answers for the study, or changes for a study that names nobody."""
    words = CATALOGUES["en"]
    hashes = []
    for seed, named in enumerate(({}, WHOLE)):
        token = service.participant.begin(
            service.researcher.open_study(bundle(name=f"s{seed}", config={"contact": named}), 2)
        )
        service.participant.consent(token, True)
        [(kept,)] = query(service, "SELECT text_sha256 FROM consent ORDER BY at DESC LIMIT 1")
        hashes.append(kept)
    plain = [words["consent"], words["agree_age"], words["agree"]]
    said = (
        "Responsible for this study: Dr Ada. Ethics approval: Board, 7/21. "
        "Questions or concerns? Write to ada@example.org"
    )
    texts = ["\n\n".join(plain), "\n\n".join([plain[0], said, *plain[1:]])]
    assert hashes == [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def test_a_closed_study_still_says_whom_to_write_to(service: Service, bundle: MakeBundle) -> None:
    """Catches a contact that only those who already take part are shown."""
    study = service.researcher.open_study(bundle(config={"contact": WHOLE}), 2)
    service.researcher.close_study(study)
    assert service.participant.entry(study)["contact"]["email"] == "ada@example.org"


@pytest.mark.parametrize("email", ["ada", "a b@c.org", "a@b.org?subject=x", "a@b@c.org", 'a"@b.org', "<a@b.org>"])
def test_what_is_no_address_is_refused(email: str) -> None:
    """Catches an address that would break the link, or smuggle a subject into it."""
    with pytest.raises(ValidationError, match="email"):
        Contact(email=email)


def test_studies_without_a_contact_keep_their_hash() -> None:
    """Catches a new section that changes the hash of every study frozen before there was one."""
    written: dict[str, Any] = Procedure().model_dump(mode="json")
    assert "contact" not in written
    assert Procedure.model_validate({"contact": WHOLE}).model_dump()["contact"] == WHOLE
