"""What version 0.1 froze still opens: `tests/frozen/version-0.1.tar.gz` was made by its code."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
import torch

from study.building.build import verify
from study.bundle import Bundle, canonical
from study.collection.backup import backup, restore
from study.collection.export import export
from study.locales import FORMER
from study.participation.payloads import Recruit
from study.plan.texts import compose_consent, texts_of
from study.service import Service
from tests.study.participants import query, take_part

STUDY = "frozen"
GERMAN_CONSENT = "a248a1ba1c3f17de979f003329f4e74fe7307b08370284427a8cf17a90a026c0"
"""Of the same study in German, by the code of version 0.2."""
STUDY_HASH = "29a612535aa3f4c06be49a35240fdf898ee9eda6753b7e6b849900ec83e45733"
ARCHIVE = Path(__file__).parents[1] / "frozen" / "version-0.1.tar.gz"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def service(kept: Path) -> Service:
    """The workspace as its owner would open it after moving the folder."""
    service = Service(kept / "home")
    (folder,) = (kept / "home" / "bundles").iterdir()
    service.researcher.move_bundles({STUDY_HASH: folder})
    return service


def test_a_frozen_bundle_opens_and_renders_again_byte_for_byte(kept: Path) -> None:
    """Catches a renamed key of the manifest, and any change of a stimulus, in all nine conditions.

    Stimuli are rendered again only on a processor like the one that made them: another rounds differently.
    """
    (folder,) = (kept / "home" / "bundles").iterdir()
    bundle = Bundle(folder)
    assert bundle.study_hash == STUDY_HASH
    assert len(bundle.manifest.conditions) == 9
    faults = verify(bundle, render=torch.backends.cpu.get_cpu_capability() == "AVX512")
    # Processors of other makers round differently with the same instructions: bytes agree, measured values nearly.
    assert [fault for fault in faults if "show the same images" not in fault] == []


def test_an_old_study_keeps_the_consent_that_its_participants_gave(kept: Path, service: Service) -> None:
    """Catches new default texts in a study that was collected under others: the database has the hash of each."""
    with service:
        agreed = query(service, "SELECT DISTINCT text_sha256 FROM consent")
    (folder,) = (kept / "home" / "bundles").iterdir()
    manifest = Bundle(folder).manifest
    assert agreed == [(hash_text(compose_consent(manifest)),)]
    german = manifest.model_copy(update={"config": {**manifest.config, "language": "de"}})
    assert hash_text(compose_consent(german)) == GERMAN_CONSENT


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "b7cdf0186f9411989174941dcf0fc3ad9716118da7f34d02e21d4c8c5b444605"),
        ("de", "227f76d50c57e96162c15a1c90d9ad9cdff681995c94d713269fe74e9a898f78"),
    ],
)
def test_an_old_study_keeps_all_of_its_texts(kept: Path, language: str, expected: str) -> None:
    """Catches a change of the former texts: the hashes are of the Python catalogues of version 0.2."""
    (folder,) = (kept / "home" / "bundles").iterdir()
    manifest = Bundle(folder).manifest
    texts = texts_of(manifest.model_copy(update={"config": {"language": language}, "texts": {}}))
    assert hash_text(canonical({key: texts[key] for key in FORMER[language]}).decode()) == expected


def hash_text(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def test_an_old_database_migrates_and_holds_the_same_responses(kept: Path, service: Service) -> None:
    """Catches a migration that loses, changes or reorders a response, and a column that no export has any more."""
    with service:
        assert service.researcher.verify() == []
        now = pd.read_csv(export(service.researcher, STUDY, kept / "now.csv", ("live", "sim")))
    before = pd.read_csv(kept / "responses.csv")
    pd.testing.assert_frame_equal(now[list(before.columns)], before)


def test_a_personal_link_of_before_still_lets_its_participant_in(kept: Path, service: Service) -> None:
    """Catches another way of signing links: those already sent to participants would be refused."""
    (link,) = json.loads((kept / "links.json").read_text())
    sent = {key: values[0] for key, values in parse_qs(urlsplit(link).query).items()}
    with service:
        service.researcher.set_access(STUDY, "personal")
        recruit = Recruit(person=sent["pid"], signature=sent["sig"])
        token = service.participant.begin(STUDY, recruit=recruit)
        assert take_part(service, token)
        assert service.access.login("correct horse battery", "192.0.2.1")


def test_a_backup_of_an_old_workspace_can_be_restored(kept: Path, service: Service) -> None:
    """Catches a backup that leaves out what only an old workspace has."""
    with service:
        folder = backup(service.researcher, kept / "backup").folder
    assert restore(folder, kept / "restored") == []
