"""The researcher's side of the service: opening studies, reading responses, settling with the recruiter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from core.errors import ForetellError
from core.types import Progress, silent
from study.bundle import Bundle, Manifest
from study.collection import interim, recruiting
from study.collection.access.directory import AccountDirectory
from study.collection.access.door import guard
from study.collection.access.members import Members
from study.collection.coding import Coding, read_codes
from study.collection.designing import Designing
from study.collection.integrity import find_faults, find_unplayable
from study.collection.interim import InterimStatus
from study.collection.library import Library
from study.collection.messages import Messages
from study.collection.monitor import Monitor, build_monitor
from study.collection.replay import Replay, build_replay, require_unblinded
from study.collection.status import StudyStatus, nest_counts
from study.collection.tables import outcomes
from study.collection.tables.frames import response_frame
from study.collection.tables.participants import participant_frame
from study.participation import entrance
from study.participation.links import sign_path
from study.participation.page import entry
from study.participation.participant import Participant
from study.participation.payloads import Recruit
from study.participation.receipt import Receipt, verify_receipt
from study.plan.texts import texts_of
from study.store import Connection, audit, identities, quota, repository, responses, timemark, witness
from study.store.rows import Mode, Row, VersionRow
from study.workspace.workspace import bundles, study_name

if TYPE_CHECKING:
    from study.analysis.models.records import InterimAnalysis


@guard
class Researcher(Messages, Coding, Designing, Library, Members, AccountDirectory):
    """The actions of the pages and the command line, each with the permission that it needs.

    Permissions are in `study.collection.access.permissions`; a function without one cannot be added. `Refusal` (403) is
    raised where the account lacks it.
    """

    def open_study(self, bundle_folder: Path, per_condition: int) -> str:
        """Verify a bundle and open it to new participants; return its name.

        Opening the same bundle again only adds places, if `per_condition` is larger. Another
        bundle of the same name supersedes it for new participants; those who have started finish the old one.
        """
        if per_condition < 1:
            raise ForetellError(f"per_condition is {per_condition}. A study needs at least 1 participant in each.")
        bundle = _open_verified_bundle(bundle_folder)
        manifest = bundle.manifest

        def work(db: Connection) -> None:
            repository.open_version(db, manifest.study_hash, manifest.name, str(bundle.folder), self.workspace.clock())
            entrance.enlarge(db, manifest, "live", per_condition)
            audit.append(db, self.workspace.clock(), self.actor, "opened", {"study_hash": manifest.study_hash})

        self.workspace.store.write(work)
        self.workspace.bundles[manifest.study_hash] = bundle
        return manifest.name

    def add_study(self, bundle_folder: Path) -> str:
        """Verify a bundle for simulated participants without opening it; return its name. An open study stays open."""
        return self._register(bundle_folder).name

    def close_study(self, study: str) -> None:
        """Close a study to new participants; those who have started may finish."""
        self._change(study, "closed", lambda db: repository.close_version(db, study))

    def pause_study(self, study: str) -> None:
        """Pause a study for new participants, and tell them so; those who have started may finish."""
        self._change(study, "paused", lambda db: repository.pause_version(db, study, True))

    def resume_study(self, study: str) -> None:
        """Resume a study after a pause."""
        self._change(study, "resumed", lambda db: repository.pause_version(db, study, False))

    def studies(self) -> list[StudyStatus]:
        """List every version ever opened of the studies that the account may see, the oldest first."""
        versions, sessions, slots = self.workspace.store.read(
            lambda db: (repository.versions(db), repository.session_counts(db), quota.slot_counts(db))
        )
        seen = {name for name in {version["name"] for version in versions} if self.sees(name)}
        return [self._status(version, sessions, slots) for version in versions if version["name"] in seen]

    def responses(self, study: str, modes: Sequence[Mode] = ("live",)) -> pd.DataFrame:
        """Tabulate every response to a main trial; columns are described in `study.collection.export.DICTIONARY`.

        Raises
        ------
        ForetellError
            No study of that name was ever opened.
        """
        self.workspace.require_study(study)
        rows, codes = self.workspace.store.read(
            lambda db: (responses.list_main_responses(db, study, modes), read_codes(db, study, modes))
        )
        known = {row["study_hash"] for row in rows}
        return response_frame(rows, {one: self.workspace.bundle(one).manifest for one in known}, codes)

    def load_participants(self, study: str, modes: Sequence[Mode] = ("live",)) -> pd.DataFrame:
        """Tabulate every participant of a study; columns are described in `study.collection.export.PARTICIPANTS`."""
        self.workspace.require_study(study)
        return self.workspace.store.read(
            lambda db: participant_frame(db, repository.sessions(db, study, modes), self.workspace.manifest_of)
        )

    def monitor(self, study: str) -> Monitor:
        """Summarise the progress of a collection, without outcomes by condition."""
        self.workspace.require_study(study)
        return self.workspace.store.read(
            lambda db: build_monitor(db, study, self.workspace.manifest_of, self.workspace.home, self.workspace.clock())
        )

    def is_blinded(self, study: str) -> bool:
        """Tell whether a study collects responses and nobody has unblinded it."""
        return self.workspace.store.read(lambda db: outcomes.is_blinded(db, study))

    def unblind(self, study: str, reason: str) -> pd.DataFrame:
        """Tabulate outcomes by condition before the end, after logging the reason in the audit trail."""
        self.workspace.require_study(study)
        self.workspace.store.write(lambda db: outcomes.note(db, study, reason, self.workspace.clock(), self.actor))
        return outcomes.table(self.responses(study), self.load_participants(study))

    def replay(self, study: str, participant: str) -> Replay:
        """Return what happened in one participation and what was on its screen, after logging that it was asked for.

        Raises
        ------
        ForetellError
            The study still collects and was not unblinded, there is no such participant, or they withdrew.
        """
        self.workspace.require_study(study)

        def work(db: Connection) -> Replay:
            require_unblinded(db, study)
            session = self._participant(db, study, participant)
            made = build_replay(db, session, self.workspace.manifest_of(session))
            detail = {"session": session["session_id"]}
            audit.append(db, self.workspace.clock(), self.actor, "replayed a session", detail)
            return made

        return self.workspace.store.write(work)

    def personal_links(self, study: str, participants: Sequence[str]) -> list[str]:
        """Make the path of a signed link for each id; links cannot be forged, and each starts one participation."""
        self.workspace.require_study(study)
        paths = [sign_path(self.workspace.key, study, Recruit(person=id_).person) for id_ in participants]
        self.workspace.note(self.actor, "signed personal links", {"study": study, "count": len(paths)})
        return paths

    def load_interim_status(self, study: str) -> InterimStatus | None:
        """Load the state of the interim analyses of the version opened last; None if its plan declares none."""
        manifest = self.workspace.find_shown_manifest(study)
        plan = interim.plan_of(manifest)
        if plan is None:
            return None
        return self.workspace.store.read(
            lambda db: interim.load_interim_status(db, manifest, plan, self._load_stages(db, study))
        )

    def load_interim_analyses(self, study_hash: str) -> tuple[InterimAnalysis, ...] | None:
        """Load the interim analyses made of a frozen study; None if it was never opened here."""

        def work(db: Connection) -> tuple[InterimAnalysis, ...] | None:
            known = any(version["study_hash"] == study_hash for version in repository.versions(db))
            return interim.load_interim_analyses(db, study_hash) if known else None

        return self.workspace.store.read(work)

    def run_interim_analysis(self, study: str, progress: Progress = silent) -> InterimAnalysis:
        """Make the interim analysis that is due, record its verdict, and close the collection if it says stop.

        Raises
        ------
        ForetellError
            The plan declares no interim analyses, or none is due.
        """
        standing, manifest = self.load_interim_status(study), self.workspace.find_shown_manifest(study)
        number = interim.due(study, standing)
        made = interim.make(manifest, number, self.responses(study), self.load_participants(study), progress)
        self.workspace.store.write(
            lambda db: interim.keep(db, study, manifest.study_hash, made, self.workspace.clock(), self.actor)
        )
        return made

    def begin_preview(self, study: str, condition: str | None) -> str:
        """Begin a preview of the newest build in one condition, open or not; return the token of its session."""
        study_hash = self._find_previewed(study).study_hash
        return Participant(self.workspace).begin(study, mode="preview", condition=condition, study_hash=study_hash)

    def load_preview_entry(self, study: str) -> dict[str, Any]:
        """Return what the participant's page needs before a preview begins."""
        return entry(self._find_previewed(study))

    def log_export(self, study: str, modes: Sequence[Mode], count: int) -> None:
        """Log in the audit trail that this many responses were exported."""
        self.workspace.note(self.actor, "exported", {"study": study, "modes": list(modes), "responses": count})

    def note(self, act: str, detail: Mapping[str, Any]) -> None:
        """Log an administrative act in the audit trail; `detail` must not identify a participant."""
        self.workspace.note(self.actor, act, detail)

    def move_bundles(self, places: Mapping[str, Path]) -> None:
        """Record the new folders of bundles, by study hash."""

        def work(db: Connection) -> None:
            for study_hash, place in places.items():
                repository.move_version(db, study_hash, str(place.resolve()))
            audit.append(db, self.workspace.clock(), self.actor, "restored", {"versions": sorted(places)})

        self.workspace.store.write(work)

    def verify(self) -> list[str]:
        """List the faults of the database, the first wrong row first, then those of the bundles that it names."""
        rows = self.workspace.store.read(
            lambda db: [*self.workspace.find_lost_rows(db), *find_faults(db, self.workspace.manifest_of)]
        )
        key = [] if self.workspace.key_fault is None else [self.workspace.key_fault]
        return [*rows, *key, *self.workspace.find_damaged_bundles()]

    def last_response(self) -> str:
        """Describe the last response by number and time."""
        return self.workspace.store.read(witness.ends_of).last_response

    def confirm_time(self) -> None:
        """Accept the clock as right after a jump: participations expire and ids are erased from now on."""
        now = self.workspace.clock()

        def work(db: Connection) -> None:
            timemark.confirm(db, now)
            audit.append(db, now, self.actor, "confirmed the clock", {})

        self.workspace.store.write(work)

    def receipt(self, shown: str) -> Receipt:
        """Check a participant's receipt; raise `ForetellError` for a false one."""
        return self.workspace.store.read(lambda db: verify_receipt(db, self.workspace.key, shown))

    def bonus(self, study: str, batch: int | None = None) -> recruiting.Batch:
        """Return the bonuses not handed over yet, and mark them; or those of an earlier batch."""
        self.workspace.require_study(study)
        known = self.workspace.identities.read(lambda db: identities.of_study(db, study))
        return self.workspace.store.write(
            lambda db: recruiting.bonus_batch(db, study, known, batch, self.workspace.clock(), self.actor)
        )

    def reconcile(self, study: str, statuses: pd.DataFrame) -> pd.DataFrame:
        """Compare a recruiter's list with ours, free the places of returned participations, and list differences."""
        self.workspace.require_study(study)
        known = self.workspace.identities.read(lambda db: identities.of_study(db, study))
        return self.workspace.store.write(
            lambda db: recruiting.reconcile(
                db, study, known, statuses, self.workspace.manifest_of, self.workspace.clock(), self.actor
            )
        )

    def _find_previewed(self, study: str) -> Manifest:
        """Find the newest build of a study, and register it; the version opened last, if no build is here.

        It is looked up by the study's name and never by a path: the name is what the permission was checked for.
        """
        folder = next((place for place in bundles(self.workspace.home) if study_name(place) == study), None)
        if folder is None:
            return self.workspace.find_shown_manifest(study)
        manifest = Bundle(folder).manifest
        if manifest.name != study:
            raise ForetellError(
                f"The folder {folder.name} contains the study {manifest.name!r}. Build {study!r} again."
            )
        if manifest.study_hash not in {row["study_hash"] for row in self.workspace.store.read(repository.versions)}:
            self._register(folder)
        return manifest

    def _register(self, bundle_folder: Path) -> Manifest:
        """Register a verified bundle without opening it, and return its manifest; an open version stays open."""
        bundle = _open_verified_bundle(bundle_folder)
        manifest, folder = bundle.manifest, str(bundle.folder)
        row = manifest.study_hash, manifest.name, folder, self.workspace.clock()
        self.workspace.store.write(lambda db: repository.add_version(db, *row))
        self.workspace.bundles[manifest.study_hash] = bundle
        return manifest

    def _load_stages(self, db: Connection, study: str) -> pd.DataFrame:
        """Tabulate condition, stage and study_hash of every real participant."""
        rows = repository.sessions(db, study, ["live"])
        return pd.DataFrame(rows, columns=["condition", "stage", "study_hash"])

    def _change(self, study: str, act: str, work: Callable[[Connection], int]) -> None:
        """Change the open version, with a record in the audit trail."""

        def change(db: Connection) -> int:
            changed = work(db)
            if changed:
                audit.append(db, self.workspace.clock(), self.actor, act, {"study": study})
            return changed

        if not self.workspace.store.write(change):
            raise self.workspace.unknown_study(study)

    def _status(self, version: VersionRow, sessions: list[Row], slots: list[Row]) -> StudyStatus:
        study_hash, folder = version["study_hash"], Path(version["folder"])
        try:
            title = texts_of(self.workspace.bundle(study_hash).manifest)["title"]
        except ForetellError as error:
            title = str(error)
        counts = [nest_counts([c for c in rows if c["study_hash"] == study_hash], key)
                  for rows, key in ((sessions, "stage"), (slots, "state"))]  # fmt: skip
        state = "paused" if version["paused"] else version["state"]
        return StudyStatus(version["name"], title, study_hash, folder, state, counts[0], counts[1], version["access"])


def _open_verified_bundle(bundle_folder: Path) -> Bundle:
    """Open a bundle whose bytes are complete and which every condition can run."""
    bundle = Bundle(bundle_folder.resolve())
    for complaint in bundle.find_damage():
        raise ForetellError(complaint)
    for complaint in find_unplayable(bundle.manifest):
        raise ForetellError(complaint)
    return bundle
