"""The workspace's key: made once, and recognised at every start."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli import main as cli
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.study.participants import MakeBundle, query, take_part


@pytest.fixture
def home(service: Service, bundle: MakeBundle) -> Path:
    """A workspace whose participants have private codes."""
    study = service.researcher.open_study(bundle(), per_condition=2)
    take_part(service, service.participant.begin(study))
    return service.workspace.home


@pytest.mark.parametrize("content", [None, b"", bytes(32)])
@pytest.mark.parametrize("checked", [True, False])
def test_a_lost_or_foreign_key_is_not_replaced(
    service: Service, home: Path, content: bytes | None, checked: bool
) -> None:
    """Catches a new key in the place of a lost one, which makes every private code invalid; also in an old database."""
    key = home / "participants.key"
    if not checked:
        query(service, "DELETE FROM key_check")
    service.close()
    whole = key.read_bytes()
    key.unlink()
    if content is not None:
        key.write_bytes(content)
    with Service(home, service.workspace.database) as later:
        with pytest.raises(ForetellError, match=r"participants\.key is (missing|not the key)"):
            later.workspace.require_sound()
        with pytest.raises(ForetellError, match="withdrawal code"):
            later.participant.begin("demo", participant="another")
        assert any("participants.key is" in fault for fault in later.researcher.verify())
    assert (key.read_bytes() if key.exists() else None) == content
    key.write_bytes(whole)
    with Service(home, service.workspace.database) as later:
        assert later.researcher.verify() == []
        assert later.participant.begin("demo", participant="another")


def test_serve_refuses_to_start_with_a_foreign_key(
    service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.close()
    (home / "participants.key").write_bytes(secrets.token_bytes(32))
    monkeypatch.setenv(VARIABLE, str(home))
    if isinstance(service.workspace.database, str):
        monkeypatch.setenv("FORETELL_DATABASE", service.workspace.database)
    with pytest.raises(ForetellError, match="is not the key of this workspace"):
        CliRunner().invoke(cli.build_app(), ["serve", "--no-browser", "--no-demo"], catch_exceptions=False)
