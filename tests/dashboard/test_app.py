"""What the server does by itself while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard import app
from dashboard.server import documentation
from dashboard.shared import service
from study.store import StoreError


def test_what_was_imported_is_out_of_the_garbage_collectors_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches full collections that look at all objects of PyTorch again and again: each stops every request."""
    imported = ModuleType("imported")
    held = vars(imported)["held"] = [imported]
    monkeypatch.setitem(sys.modules, imported.__name__, imported)
    try:
        known = app.freeze_modules(0)
        later = [imported]
        assert app.freeze_modules(known) == known
        seen = {id(tracked) for tracked in gc.get_objects()}
        assert (id(held) in seen, id(later) in seen) == (False, True)
    finally:
        gc.unfreeze()


def test_ids_are_erased_while_the_server_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches ids that outlive their time until the next start, and a database that is away once ending it for good."""
    asked = 0

    def erase_identities() -> int:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise StoreError("away")
        return 0

    async def until_asked_again() -> None:
        forgetting = asyncio.create_task(app.forget_in_time(0.001))
        while asked < 3 and not forgetting.done():
            await asyncio.sleep(0.001)
        forgetting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await forgetting

    monkeypatch.setattr(
        service, "get_service", lambda: SimpleNamespace(workspace=SimpleNamespace(erase_identities=erase_identities))
    )
    # On a thread of its own: a test in a browser leaves a loop behind on this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, until_asked_again()).result()
    assert asked >= 3


def test_the_documentation_is_served_where_it_is_built_and_help_says_how_where_it_is_not(tmp_path: Path) -> None:
    """Catches an error page before ``foretell.py docs``, and files outside the website."""
    (tmp_path / "secret.txt").write_text("secret")
    client = TestClient(Starlette(routes=documentation.routes(tmp_path / "site")), follow_redirects=False)
    assert client.get("/docs/index.html").headers["location"] == "/help"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<h1>Foretell</h1>")
    assert client.get("/docs/").text == "<h1>Foretell</h1>"
    assert client.get("/docs/%2e%2e/secret.txt").status_code == 404
