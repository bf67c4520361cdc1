"""Arrival of participants: a new session, or their own again, which takes more than an id that can be guessed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from core.errors import ForetellError
from study.bundle import Manifest
from study.participation import ending, prolific, responding
from study.participation.blocks import count_trials
from study.participation.catch import catch_trials
from study.participation.limits import Allowance
from study.participation.links import is_signed
from study.participation.open_workspace import OpenWorkspace
from study.participation.page import entry
from study.participation.payloads import Recruit, SessionCredentials
from study.participation.periods import choose_preview_order
from study.participation.refusals import Refusal
from study.participation.sittings.course import make_link
from study.plan.orders import count_within, is_within, list_places
from study.plan.procedure import procedure_of
from study.plan.texts import texts_of
from study.store import Connection, guests, identities, quota, repository, sittings
from study.store.rows import Mode, SessionRow, VersionRow
from study.workspace import disk

DAY_NS = 24 * 3600 * 10**9
LIVE_NS = 10 * 60 * 10**9
"""A session before the consent that was active within this time belongs to whoever has it open."""
STARTS, STARTS_PER_MINUTE = 40, 40
"""New sessions from one address: a class starts at once, and 200 participants behind one address within minutes."""
CODES, CODES_PER_MINUTE = 20, 10
"""Private codes tried from one address."""


class Arrivals:
    """Requests of the participant's page before it has a token."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace

    @cached_property
    def _starts(self) -> Allowance:
        return Allowance(STARTS, STARTS_PER_MINUTE)

    @cached_property
    def _codes(self) -> Allowance:
        return Allowance(CODES, CODES_PER_MINUTE)

    @cached_property
    def _salt(self) -> bytes:
        """Keys the hashes of addresses; it ends with this process, and with it all that could undo them."""
        return secrets.token_bytes(32)

    def now_ms(self) -> float:
        """Return the server's clock, ms since 1970: pages measure how far theirs is from it."""
        return self._workspace.clock() / 1e6

    def stores_responses(self) -> bool:
        """Tell whether responses can be stored: not where files, rows or the key of the workspace are missing."""
        return self._workspace.store.fault is None

    def read_asset(self, study: str, sha256: str) -> bytes:
        """Read an image of any version of a study, unchanged since it was frozen; else raise `ForetellError`."""
        for bundle in self._workspace.bundles_of(study):
            if sha256 in bundle.manifest.assets:
                return bundle.read_asset(sha256)
        raise ForetellError(f"Study {study!r} has no such image.")

    def entry(self, study: str, token: str = "") -> dict[str, Any]:
        """Return what the page needs before the participant starts; nothing is kept.

        With a session's token, that of its version, which need not be open: a preview, or a superseded version.
        """
        hashed = responding.token_hash(token)
        session = self._workspace.store.read(lambda db: repository.session_by_token(db, hashed)) if token else None
        if session is not None and session["study"] == study:
            return entry(self._workspace.manifest_of(session))
        return entry(self._workspace.find_shown_manifest(study))

    def words(self, study: str) -> tuple[str, dict[str, str]]:
        """Return language and texts of a study; raise `Refusal` (404) where there is none."""
        manifest = self._workspace.find_shown_manifest(study)
        return procedure_of(manifest).language, texts_of(manifest)

    def begin(
        self,
        study: str,
        *,
        mode: Mode = "live",
        participant: str | None = None,
        condition: str | None = None,
        recruit: Recruit | None = None,
        proof: SessionCredentials | None = None,
        address: str | None = None,
        study_hash: str | None = None,
    ) -> str:
        """Open or resume a session and return its token.

        The same `participant`, or the same `recruit`, always gets the same session, and the token it had before
        stops working. An id in a link can be guessed: to resume, `recruit` must be signed or `proof` must fit.
        `participant` is the word of a program on this machine and needs neither. A preview may fix the condition,
        takes no place in the allocation, and may be of a version that is not open, by its `study_hash`. Simulated
        participants need no open study. The `address` limits how many
        sessions it starts; it is not kept.

        Raises
        ------
        Refused
            403: the id is in use and nothing proves that it is theirs, or the study is not open to it; 429: too many
            sessions from one address; 410: closed, paused or full; 404: no such study.
        """
        version = self._workspace.store.read(lambda db: _find_version(db, study, mode, study_hash))
        names = self._list_names(study, recruit, participant) or [uuid.uuid4().hex]
        token = secrets.token_urlsafe(24)
        signed = recruit is not None and self._is_signed(study, recruit)
        vouched, unsigned = signed, None
        if mode == "live" and participant is None and not signed:
            vouched, unsigned = self._by_prolific(study, recruit)
        started = {"browser_hash": _hash_secret(proof.browser) if proof and proof.browser else None}
        if mode == "preview":
            started |= self._preview_place(version["study_hash"] if version else None, condition)
        if mode == "live" and address is not None:
            started["origin"] = self._hash_address(address)
        source = started.get("origin")

        def work(db: Connection) -> None:
            session = _find_session(db, study, mode, names)
            if unsigned is not None and (session is None or not self._is_theirs(session, proof)):
                raise unsigned
            if session is not None:
                if recruit is not None and not vouched and not self._is_theirs(session, proof):
                    self._limit_codes(address)  # or a list of ids could be tried to learn which of them took part
                    is_done = session["stage"] == "done"
                    raise Refusal(
                        403,
                        "This ID has a session that is not proved to be yours.",
                        "refused_finished" if is_done else "refused_known",
                    )
                return self._renew(db, session, token, started["browser_hash"])
            if version is None:
                raise self._make_closed_error(study)
            if mode == "live":
                self._admit(db, version, names, signed)
                self._refuse_earlier(db, version, recruit, participant)
                if source is not None and not self._starts.take(source):
                    raise Refusal(429, "Too many sessions were started from this address.", "refused_busy")
            self._new_session(db, version, mode, names[0], token, started)

        self._workspace.store.write(work)
        if recruit is not None and mode == "live":
            self._identify(token, recruit)
        return token

    def come_back(self, study: str, link: str, address: str | None = None) -> str:
        """Resume the session of a personal link, on any device, and return its new token; the old one stops working.

        Raises
        ------
        Refused
            403: no participant of this study has this link; 429: too many were tried from one address.
        """
        hashed, token = responding.token_hash(link), secrets.token_urlsafe(24)
        # Looked for outside the writer: links tried at random must not hold up participants.
        known = self._workspace.store.read(lambda db: sittings.find_session(db, hashed))
        if known is None or known["study"] != study:
            self._limit_codes(address)
            raise Refusal(403, "No participant has this personal link.", "refused_link")
        mine = known["session_id"]
        self._workspace.store.write(lambda db: self._renew(db, repository.session_by_id(db, mine), token, None))
        return token

    def _by_prolific(self, study: str, recruit: Recruit | None) -> tuple[bool, Refusal | None]:
        """Tell whether Prolific signed a link, and the refusal where it should have.

        The signature lasts a while only: whoever has another proof resumes a session without it.
        """
        try:
            return prolific.check(self._workspace.home, study, recruit, self._workspace.clock() / 1e9), None
        except Refusal as refused:
            return False, refused

    def _is_signed(self, study: str, recruit: Recruit) -> bool:
        """Tell whether a link's id carries this workspace's signature; a false one is refused (403)."""
        if recruit.signature is None:
            return False
        if recruit.source != "link" or not is_signed(self._workspace.key, study, recruit.person, recruit.signature):
            raise Refusal(403, "The signature of this link does not match its ID.", "refused_link")
        return True

    def _is_theirs(self, session: SessionRow, proof: SessionCredentials | None) -> bool:
        """Tell whether whoever comes with an id alone may have its session."""
        if session["stage"] == "declined":
            return True  # nothing of them is kept
        if session["stage"] == "consent" and self._workspace.clock() - session["last_seen"] > LIVE_NS:
            return True  # nothing of them is kept yet, and nobody has it open
        if proof is None:
            return False
        browser, kept = _hash_secret(proof.browser or ""), session["browser_hash"] or ""
        code = ending.withdrawal_code(self._workspace.key, session["session_id"])
        return hmac.compare_digest(browser, kept) or (
            proof.code is not None and hmac.compare_digest(code.encode(), ending.tidy(proof.code).encode())
        )

    def _admit(self, db: Connection, version: VersionRow, names: Sequence[str], signed: bool) -> None:
        """Refuse a newcomer whom the study's access mode does not let in, or for whom there is no room."""
        listed = version["access"] == "list" and any(guests.is_invited(db, version["name"], one) for one in names)
        invited = signed or listed
        if version["access"] != "open" and not invited:
            raise Refusal(403, "This study takes invited participants only.", "refused_invited")
        texts = texts_of(self._workspace.bundle(version["study_hash"]).manifest)
        if version["paused"] or disk.is_low(self._workspace.home):
            raise Refusal(410, texts["paused"], "paused")
        if not quota.has_free_slot(db, version["study_hash"], "live", self._workspace.clock()):
            raise Refusal(410, texts["full"], "full")

    def _refuse_earlier(
        self, db: Connection, version: VersionRow, recruit: Recruit | None, participant: str | None
    ) -> None:
        """Refuse a newcomer who agreed to take part in a study that this one excludes."""
        for study in procedure_of(self._workspace.bundle(version["study_hash"]).manifest).recruiter.exclude:
            earlier = _find_session(db, study, "live", self._list_names(study, recruit, participant))
            if earlier is not None and earlier["agreed_at"] is not None:
                raise Refusal(403, f"They took part in {study}, which this study excludes.", "refused_earlier")

    def _limit_codes(self, address: str | None) -> None:
        if address is not None and not self._codes.take(self._hash_address(address)):
            raise Refusal(429, "Too many codes were tried from this address.", "refused_busy")

    def _hash_address(self, address: str) -> str:
        return hmac.new(self._salt, address.encode(), "sha256").hexdigest()[:16]

    def _identify(self, token: str, recruit: Recruit) -> None:
        """Keep a recruiter's id in its own file, for a day until its participant agrees; declining leaves none."""
        session = self._workspace.store.read(lambda db: responding.session_of_token(db, token))
        if session["stage"] == "declined":
            return
        now = self._workspace.store.write(self._workspace.compute_trusted_time)
        row = {
            "participant_id": session["participant_id"],
            "study": session["study"],
            "source": recruit.source,
            "ext_person": recruit.person,
            "ext_study": recruit.study,
            "ext_session": recruit.session,
            "created_at": now,
            "erase_after": self._compute_erasure_time(session) or now + DAY_NS,
        }
        self._workspace.identities.write(lambda db: identities.add(db, row))

    def _compute_erasure_time(self, session: SessionRow) -> int | None:
        """Compute when the id of a participant who agreed is erased; None before the consent."""
        days = procedure_of(self._workspace.manifest_of(session)).recruiter.retention_days
        return None if session["agreed_at"] is None else int(session["agreed_at"]) + days * DAY_NS

    def _renew(self, db: Connection, session: SessionRow, token: str, browser: str | None) -> None:
        resumed = {"token_hash": responding.token_hash(token), "n_resumes": session["n_resumes"] + 1, "tab_id": None}
        mine = {} if browser is None else {"browser_hash": browser}
        repository.change_session(db, session, {**resumed, **mine, "last_seen": self._workspace.clock()})

    def _new_session(
        self, db: Connection, version: VersionRow, mode: Mode, who: str, token: str, started: dict[str, Any]
    ) -> None:
        now, manifest = self._workspace.clock(), self._workspace.bundle(version["study_hash"]).manifest
        session_id = secrets.token_hex(8)  # it is in every row of theirs, and in the indexes
        row = {
            "session_id": session_id,
            "study": version["name"],
            "study_hash": version["study_hash"],
            "participant_id": who,
            "mode": mode,
            "token_hash": responding.token_hash(token),
            "code_hash": ending.code_hash(self._workspace.key, session_id),
            "stage": "consent",
            "practice": len(manifest.practice),
            "main": (count_within if is_within(manifest) else count_trials)(manifest) + len(catch_trials(manifest)),
            "started_at": now,
            "last_seen": now,
        }
        if procedure_of(manifest).sittings is not None:
            row["link_hash"] = responding.token_hash(make_link(self._workspace.key, session_id))
        repository.add_session(db, {**row, **started})

    def _make_closed_error(self, study: str) -> ForetellError:
        """Return the refusal of a newcomer to a study that was open once; of any other, that there is none."""
        try:
            return Refusal(410, texts_of(self._workspace.find_shown_manifest(study))["closed"], "closed")
        except Refusal as unknown:
            return unknown

    def _preview_place(self, study_hash: str | None, condition: str | None) -> dict[str, Any]:
        if study_hash is None:
            return {}
        manifest: Manifest = self._workspace.bundle(study_hash).manifest
        name = condition or secrets.choice(manifest.conditions)
        if name not in (*manifest.conditions, *list_places(manifest)):
            known = ", ".join(manifest.conditions)
            raise Refusal(404, f"Study {manifest.name!r} has no condition {name!r}. It has: {known}.", "refused_link")
        return {"condition": choose_preview_order(manifest, name), "side_flip": 0, "order_seed": manifest.seed % 2**31}

    def _list_names(self, study: str, recruit: Recruit | None, participant: str | None) -> list[str]:
        """List the keyed hashes that name a participant in a study, that of a new session first; none without an id."""
        if recruit is not None:
            return self._workspace.pseudonyms_of(study, recruit.person, recruit.source)
        if participant is None:
            return []
        return [hmac.new(self._workspace.key, f"{study}\0{participant}".encode(), "sha256").hexdigest()]


def _find_session(db: Connection, study: str, mode: Mode, names: Sequence[str]) -> SessionRow | None:
    """Find the session of a participant by any of their names; the first one counts if there are several."""
    sessions = (repository.session_of(db, study, mode, name) for name in names)
    return next((session for session in sessions if session is not None), None)


def _find_version(db: Connection, study: str, mode: Mode, study_hash: str | None) -> VersionRow | None:
    """Find the version that a newcomer gets; a preview may name one that is not open."""
    if mode == "sim":
        return repository.newest_version_of(db, study)
    if mode == "preview" and study_hash is not None:
        return next((row for row in repository.versions(db) if row["study_hash"] == study_hash), None)
    return repository.open_version_of(db, study)


def _hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
