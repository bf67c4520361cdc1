"""What the server does by itself while it runs."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from dashboard import app
from dashboard.shared import service
from study.store import StoreError


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
