"""Coding of texts by two raters, each blinded to condition, participant and the other rater."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from core.errors import ForetellError
from study.bundle import Manifest, Trial
from study.collection.access.door import ResearcherDoor
from study.collection.access.permissions import Permission
from study.names.agreement import Agreement, measure_agreement
from study.plan.coding import coding_of
from study.store import Connection, audit, coding, repository
from study.store.coding import TextKey
from study.store.rows import Mode, Row, VersionRow
from study.tasks import find_task
from study.workspace.seeds import seed_of

RATERS = 2
OPENED = "opened the agreement of the raters"
LONGEST_NAME = 60
"""Characters of a rater's name without an account."""


@dataclass(frozen=True)
class TextToCode:
    """A text as a rater sees it.

    Attributes
    ----------
    id
        Names the text and nothing else: neither participant nor condition can be read from it.
    text, trial, study_hash
        The text, the frozen trial with the unit's images, and the frozen study.
    code
        The rater's own code; None before.
    """

    id: str
    text: str
    trial: Trial
    study_hash: str
    code: str | None


@dataclass(frozen=True)
class CodingList:
    """The texts of a study in the order of one rater, and the codes to choose from."""

    rater: str
    codes: tuple[str, ...]
    correct: tuple[str, ...]
    texts: tuple[TextToCode, ...]
    is_final: bool

    @property
    def n_coded(self) -> int:
        """Number of texts that the rater has coded."""
        return sum(text.code is not None for text in self.texts)


@dataclass(frozen=True)
class CodingProgress:
    """How far the coding is: the number of texts, and how many each rater has coded, the first rater first."""

    texts: int
    coded: Mapping[str, int]

    @property
    def is_complete(self) -> bool:
        """Whether both raters have coded every text."""
        return len(self.coded) == RATERS and all(count == self.texts for count in self.coded.values())

    def describe(self) -> str:
        """Say how many texts are not coded yet, and by whom; empty once all are."""
        if self.texts == 0:
            return "There are no texts yet."
        missing = [f"{self.texts - count:,} by {rater}" for rater, count in self.coded.items() if count < self.texts]
        absent = RATERS - len(self.coded)
        if absent:
            missing.append(f"{self.texts:,} by {'a second rater' if absent == 1 else 'two raters'}")
        return f"Of {self.texts:,} texts, not coded yet: {' and '.join(missing)}." if missing else ""


class Coding(ResearcherDoor):
    """The part of the researcher's door that is about codes of texts."""

    def list_coded_studies(self) -> list[str]:
        """List the studies whose responses are texts, and that the account may code, the newest first."""
        versions = self.workspace.store.read(repository.versions)
        newest = {version["name"]: version for version in versions}
        asking = [
            name for name, version in newest.items() if self.may(Permission.CODE, name) and self._asks_text(version)
        ]
        return asking[::-1]

    def _asks_text(self, version: VersionRow) -> bool:
        """Tell whether responses are texts; not where the bundle is damaged, which other pages say."""
        try:
            return find_task(self.workspace.manifest_of(version).config).is_written
        except ForetellError:
            return False

    def load_coding(self, study: str, modes: Sequence[Mode] = ("live",), rater: str = "") -> CodingList:
        """Return the texts of a study in the rater's own order, with their own codes alone.

        Parameters
        ----------
        rater
            Name of a rater without an account; an account codes under its own address.

        Raises
        ------
        ForetellError
            The study asks for no texts, the rater has no name, or two others code them already.
        """
        name, manifest = self._name_rater(rater), self._find_coded(study)

        def work(db: Connection) -> CodingList:
            texts = self._list_texts(db, study, modes)
            own = _last_codes(coding.list_codes(db, study, modes)).get(name, {})
            self._refuse_third(db, study, modes, name)
            listed = [TextToCode(_make_id(row), row["text"], trial, row["study_hash"], own.get(_key_of(row)))
                      for row, trial in texts]  # fmt: skip
            ordered = sorted(listed, key=lambda one: seed_of(manifest.seed, "coding", name, one.id))
            settings = coding_of(manifest)
            return CodingList(name, settings.codes, settings.correct, tuple(ordered), _is_opened(db, study, modes))

        return self.workspace.store.read(work)

    def code_texts(
        self, study: str, given: Mapping[str, str], modes: Sequence[Mode] = ("live",), rater: str = ""
    ) -> int:
        """Store a rater's codes by the id of their text; return how many are not their last ones already.

        A change of mind is kept next to the code before, with its time.

        Raises
        ------
        ForetellError
            No such text or code, two others code the study already, or the agreement was opened after this text was
            coded.
        """
        name, codes = self._name_rater(rater), coding_of(self._find_coded(study)).codes

        def work(db: Connection) -> int:
            self._require_in(db, Permission.CODE, study)
            self._refuse_third(db, study, modes, name)
            known = {_make_id(row): _key_of(row) for row, _ in self._list_texts(db, study, modes)}
            is_opened, new = _is_opened(db, study, modes), 0
            for text_id, code in given.items():
                _refuse_unknown(text_id, code, known, codes)
                last = coding.find_last(db, known[text_id], name)
                if is_opened and last is not None and last["code"] != code:
                    raise ForetellError("The agreement of the raters was opened, so codes can no longer be changed.")
                new += coding.add(db, known[text_id], name, code, self.workspace.clock())
            return new

        return self.workspace.store.write(work)

    def load_coding_progress(self, study: str, modes: Sequence[Mode] = ("live",)) -> CodingProgress:
        """Count the texts of a study, and those that each rater has coded."""
        return self.workspace.store.read(lambda db: self._count(db, study, modes))

    def is_agreement_open(self, study: str, modes: Sequence[Mode] = ("live",)) -> bool:
        """Tell whether the agreement of both raters was opened."""
        return self.workspace.store.read(lambda db: _is_opened(db, study, modes))

    def open_agreement(self, study: str, modes: Sequence[Mode] = ("live",)) -> tuple[Agreement, pd.DataFrame]:
        """Open the agreement of both raters; from then on, no code can be changed. The audit trail says so.

        Returns
        -------
        (Agreement, pandas.DataFrame)
            And the disagreements: text, item, and the code of each rater.

        Raises
        ------
        ForetellError
            Not every text has the codes of both.
        """

        codes = coding_of(self._find_coded(study)).codes

        def work(db: Connection) -> tuple[Agreement, pd.DataFrame]:
            progress = self._count(db, study, modes)
            if not progress.is_complete:
                raise ForetellError(
                    f"{progress.describe()} The agreement opens once both raters have coded every text."
                )
            if not _is_opened(db, study, modes):
                detail = {"study": study, "modes": [*modes]}
                audit.append(db, self.workspace.clock(), self.actor, OPENED, detail)
            return self._compare(db, study, modes, list(progress.coded), codes)

        return self.workspace.store.write(work)

    def remove_rater(self, study: str, rater: str, reason: str, modes: Sequence[Mode] = ("live",)) -> int:
        """Remove a rater with all their codes, so that another one can code; return how many codes there were.

        Raises
        ------
        ForetellError
            No reason, or no such rater.
        """
        if not reason.strip():
            raise ForetellError("Say why the rater is removed: the audit trail keeps it.")

        def work(db: Connection) -> int:
            self._require_in(db, Permission.MANAGE_MEMBERS, study)
            removed = coding.remove_rater(db, study, modes, rater)
            if not removed:
                raise ForetellError(f"{rater!r} has coded nothing in {study}. Its raters are on the page Coding.")
            detail = {"study": study, "rater": rater, "codes": removed, "reason": reason.strip()[:300]}
            audit.append(db, self.workspace.clock(), self.actor, "removed a rater", detail)
            return removed

        return self.workspace.store.write(work)

    def _compare(
        self, db: Connection, study: str, modes: Sequence[Mode], raters: Sequence[str], codes: Sequence[str]
    ) -> tuple[Agreement, pd.DataFrame]:
        own, texts = _last_codes(coding.list_codes(db, study, modes)), self._list_texts(db, study, modes)
        given = [[own[rater][_key_of(row)] for row, _ in texts] for rater in raters]
        made = measure_agreement(given[0], given[1], codes)
        rows = [
            {"text": row["text"], "item": row["item_id"], raters[0]: first, raters[1]: second}
            for (row, _), first, second in zip(texts, *given, strict=True)
            if first != second
        ]
        return made, pd.DataFrame(rows, columns=["text", "item", *raters])

    def _count(self, db: Connection, study: str, modes: Sequence[Mode]) -> CodingProgress:
        keys = {_key_of(row) for row, _ in self._list_texts(db, study, modes)}
        own = _last_codes(coding.list_codes(db, study, modes))
        return CodingProgress(len(keys), {rater: len(keys & codes.keys()) for rater, codes in own.items()})

    def _name_rater(self, rater: str) -> str:
        """Return the address of the account, or the given name where there is none."""
        if self.account.address is not None:
            return self.account.address
        name = rater.strip()
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise ForetellError(f"Give the rater a name of at most {LONGEST_NAME} characters: codes are kept under it.")
        return name

    def _refuse_third(self, db: Connection, study: str, modes: Sequence[Mode], name: str) -> None:
        raters = list(_last_codes(coding.list_codes(db, study, modes)))
        if len(raters) >= RATERS and name not in raters:
            raise ForetellError(
                f"{raters[0]} and {raters[1]} code the texts of {study}, and a study has two raters. Ask its owner to "
                "remove one of them first."
            )

    def _list_texts(self, db: Connection, study: str, modes: Sequence[Mode]) -> list[tuple[Row, Trial]]:
        rows = coding.list_texts(db, study, modes)
        manifests = {one: self.workspace.bundle(one).manifest for one in {row["study_hash"] for row in rows}}
        trials = {one: {trial.id: trial for trial in manifest.trials} for one, manifest in manifests.items()}
        return [(row, trials[row["study_hash"]][row["item_id"]]) for row in rows]

    def _find_coded(self, study: str) -> Manifest:
        """Return the newest version of a study whose responses are texts; raise `ForetellError` for any other."""
        manifest = self.workspace.manifest_of(self.workspace.versions(study)[-1])
        if not find_task(manifest.config).is_written:
            raise ForetellError(f"The study {study!r} asks for no texts, so there is nothing to code.")
        return manifest


def read_codes(db: Connection, study: str, modes: Sequence[Mode]) -> dict[TextKey, tuple[str | None, str | None]]:
    """Read the last code of each of the two raters by text, the rater who began first first.

    Texts of real participants have other raters than those of simulated ones.
    """
    read: dict[TextKey, tuple[str | None, str | None]] = {}
    for mode in modes:
        first, second = [*_last_codes(coding.list_codes(db, study, [mode])).values(), {}, {}][:RATERS]
        read |= {key: (first.get(key), second.get(key)) for key in first.keys() | second.keys()}
    return read


def _last_codes(rows: Sequence[Row]) -> dict[str, dict[TextKey, str]]:
    """Return the last code of each text by rater, the rater who began first first."""
    own: dict[str, dict[TextKey, str]] = {}
    for row in rows:
        own.setdefault(row["rater"], {})[_key_of(row)] = row["code"]
    return own


def _refuse_unknown(text_id: str, code: str, known: Mapping[str, TextKey], codes: Sequence[str]) -> None:
    if code not in codes:
        raise ForetellError(f"{code[:40]!r} is none of the codes {', '.join(codes)}.")
    if text_id not in known:
        raise ForetellError("There is no such text any more: its participant withdrew or was excluded. Go on.")


def _key_of(row: Row) -> TextKey:
    return TextKey(row["session_id"], row["trial_index"])


def _make_id(row: Row) -> str:
    return hashlib.sha256(f"{row['study_hash']}\0{row['session_id']}\0{row['trial_index']}".encode()).hexdigest()[:16]


def _is_opened(db: Connection, study: str, modes: Sequence[Mode]) -> bool:
    """Tell whether the agreement of the raters was opened."""
    detail = {"study": study, "modes": [*modes]}
    return any(json.loads(row["detail_json"]) == detail for row in audit.acts(db, OPENED))
