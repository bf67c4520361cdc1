"""Files of the database that vanish under a running server: it stops acknowledging, and saves what it holds."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from study.service import Service
from study.store import StoreError
from tests.browser.participation import at_main, query, wait_for_trial
from tests.conftest import write_bundle
from tests.faults.test_database import taking_part
from tests.server import ROOT, Server, serving
from tests.study.participants import answer

TRIALS = 12


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    home = tmp_path / "home"
    with Service(home) as service:
        folder = write_bundle(home / "bundle", name="demo", trials=TRIALS, practice=0, side=8)
        service.researcher.open_study(folder, per_condition=2)
    with serving(home) as running:
        yield running


def respond(http: httpx.Client, index: int) -> httpx.Response:
    return http.post("responses", json=answer(index, "left").model_dump(mode="json"))


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_nothing_is_acknowledged_into_a_deleted_file(server: Server, ending: str) -> None:
    """Catches responses that SQLite commits to a deleted database or log, and that no restart finds."""
    home = server.home
    with httpx.Client(base_url=f"{server.url}/api/v1/") as http:
        taking_part(http)
        acknowledged = [index for index in range(5) if respond(http, index).status_code == 201]
        assert acknowledged == list(range(5))
        (home / f"foretell.db{ending}").unlink()
        assert respond(http, 5).status_code == 503
        assert respond(http, 5).status_code == 503
    assert "nothing is stored any more" in server.log()
    server.stop()

    put_rescued_back(home)
    with Service(home) as service:
        assert service.researcher.verify() == []
        assert service.researcher.last_response().startswith("number 6, ")  # the sixth was sent, too


def put_rescued_back(home: Path) -> None:
    """Do what the server's log says."""
    [rescued] = home.glob("foretell-rescued-*.db")
    for end in ("", "-wal", "-shm"):
        (home / f"foretell.db{end}").unlink(missing_ok=True)
    assert rescued.stat().st_mode & 0o077 == 0
    rescued.rename(home / "foretell.db")


@pytest.mark.browser
def test_a_participants_page_and_monitor_say_that_nothing_is_stored(server: Server, chromium: Browser) -> None:
    """Catches a page that calls this offline, a Monitor that does not say why, and a response that is then lost."""
    with chromium.new_context() as theirs, chromium.new_context() as ours:
        server.let_in(ours)
        page, monitor = theirs.new_page(), ours.new_page()
        page.goto(at_main(server, "demo", 0))
        page.click("#begin")
        wait_for_trial(page, 1)
        page.keyboard.press("f")
        expect(page.locator("#saved")).to_have_text("Saved")
        (server.home / "foretell.db").unlink()
        wait_for_trial(page, 2)
        page.keyboard.press("f")
        expect(page.locator("#saved")).to_have_text(
            "Not saved yet: the server cannot store your answers now. Please leave this page open; it keeps trying."
        )
        monitor.goto(f"{server.url}/monitor")
        expect(monitor.get_by_text("No response is stored.")).to_be_visible()
        expect(monitor.get_by_text("foretell.db")).to_contain_text("deleted or replaced")
        server.stop()
        put_rescued_back(server.home)
        server.start()
        expect(page.locator("#saved")).to_have_text("Saved")
        assert query(server, "SELECT trial_index FROM response ORDER BY trial_index") == [(0,), (1,)]
    with Service(server.home) as service:
        assert service.researcher.verify() == []


def test_a_restart_without_its_database_is_refused(server: Server) -> None:
    """Catches an empty database that a start makes in place of the one that is missing."""
    with httpx.Client(base_url=f"{server.url}/api/v1/") as http:
        taking_part(http)
        assert respond(http, 0).status_code == 201
    server.stop()
    for path in server.home.glob("foretell.db*"):
        path.unlink()
    command = [sys.executable, "-m", "dashboard.cli", "serve", "--no-browser", "--no-demo", "--port", str(server.port)]
    environment = {"FORETELL_HOME": str(server.home), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "foretell.db is missing" in done.stderr
    assert "1 responses" in done.stderr
    assert not (server.home / "foretell.db").exists()


def test_a_watch_alone_finds_files_that_vanished(tmp_path: Path) -> None:
    """Catches a server that nobody uses and that says nothing until the next response."""
    with Service(tmp_path) as service:
        service.workspace.keep_watch()
        shutil.move(tmp_path / "foretell.db", tmp_path / "moved.db")
        with pytest.raises(StoreError, match="deleted or replaced"):
            service.workspace.keep_watch()
        assert "deleted or replaced" in str(service.researcher.explain_storage_fault())
        assert "foretell" not in str(service.act_as("colleague@example.org").explain_storage_fault())


def test_lost_rows_end_the_acknowledgements(tmp_path: Path) -> None:
    """Catches a watch that sees the newest rows missing, and goes on."""
    with Service(tmp_path) as service:
        service.researcher.note("something", {})
        service.workspace.keep_watch()
        with sqlite3.connect(tmp_path / "foretell.db") as db:
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                db.execute(f"DROP TRIGGER {name}")
            db.execute("DELETE FROM audit")
        service.workspace.keep_watch()
        with pytest.raises(StoreError, match="audit entry number"):
            service.researcher.note("something", {})


def test_another_connection_replaces_no_file_identity(tmp_path: Path) -> None:
    """Negative control: another process that reads, writes and leaves is no reason to stop."""
    with Service(tmp_path) as service:
        for _ in range(3):
            with Service(tmp_path) as other:
                other.researcher.note("something", {})
            with sqlite3.connect(tmp_path / "foretell.db") as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            service.workspace.keep_watch()
            time.sleep(0.01)
        assert service.workspace.store.fault is None
