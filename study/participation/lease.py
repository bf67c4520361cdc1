"""One live tab: whoever works in a session holds it for a while; another has to take it over, knowingly."""

from __future__ import annotations

from study.participation.refusals import Refusal
from study.store import Connection, repository
from study.store.rows import SessionRow

LEASE_NS = 60 * 10**9
RENEWED_NS = LEASE_NS // 2
"""Time left when a lease is renewed: a write less for most responses."""


def admit(db: Connection, session: SessionRow, tab: str | None, now: int, *, take: bool = False) -> None:
    """Let a tab work and hold the session for it; raises `Refusal` (423) while another tab does.

    Programs that name no tab hold nothing, and wait like any other tab while one holds the session.
    """
    until = session["tab_until"] or 0
    other = session["tab_id"] not in (None, tab) and until > now
    if other and not take:
        raise Refusal(423, "Another tab is using this session; take it over, or wait.", "refused_elsewhere")
    if tab is None:
        return
    if session["tab_id"] != tab or until < now + RENEWED_NS:
        repository.change_session(db, session, {"tab_id": tab, "tab_until": now + LEASE_NS})
