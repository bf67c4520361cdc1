"""Every study of a workspace: its file, its newest bundle, and what was collected with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from core.errors import ForetellError
from dashboard.shared.jobs import pool
from dashboard.shared.keys import build_key
from study.bundle import Bundle
from study.collection.researcher import Researcher
from study.collection.status import StudyStatus
from study.conditions import format_condition, name_place
from study.plan import config
from study.plan.templates import TEMPLATES, templates
from study.workspace.jinja import load_templates
from study.workspace.workspace import bundle_named, bundles, home, study_files, study_name

COLOURS = {
    **{"open": "green", "paused": "orange", "built": "blue", "closed": "gray"},
    **{"being built": "orange", "not built": "gray"},
}
"""Of each state's badge."""


@dataclass(frozen=True)
class Study:
    """One study as the workspace knows it.

    Attributes
    ----------
    name
        In links.
    file, settings
        The study file and its content, where there is one without faults.
    bundle
        The newest one built, or None.
    versions
        What was ever opened under this name, the oldest first.
    faults
        Sentences about what is wrong with its file or bundle.
    """

    name: str
    file: Path | None
    settings: config.StudyConfig | None
    bundle: Bundle | None
    versions: tuple[StudyStatus, ...]
    faults: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return the title that participants read."""
        if self.bundle is not None:
            return self.bundle.manifest.texts.get("title", self.name)
        return self.settings.study.title if self.settings else self.name

    @property
    def is_example(self) -> bool:
        """Whether its file came with Foretell."""
        return self.file is not None and self.file in templates()

    @property
    def subject(self) -> str:
        """Return what an example shows, as all have one title; of any other study its title."""
        return self.title if self.file is None else templates().get(self.file, self.title)

    @property
    def open_version(self) -> StudyStatus | None:
        """Return the version that new participants take."""
        return next((version for version in self.versions if version.state in ("open", "paused")), None)

    @property
    def last_version(self) -> StudyStatus | None:
        """Return the open version, or else the last one that participants could take."""
        opened = [version for version in self.versions if "live" in version.slots]
        return self.open_version or (opened[-1] if opened else None)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Return the conditions of the last version, in the study file's order if the bundle is that version."""
        slots = self.last_version.slots.get("live", {}) if self.last_version else {}
        order = self.bundle.manifest.conditions if self.bundle else ()
        return tuple(sorted(slots, key=lambda name: (order.index(name) if name in order else len(order), name)))

    @property
    def has_changed(self) -> bool:
        """Whether the file says otherwise than the bundle."""
        if self.settings is None or self.bundle is None:
            return False
        return self.settings.model_dump(mode="json") != self.bundle.manifest.config

    @property
    def state(self) -> str:
        """Describe the state in one word or two."""
        if self.open_version is not None:
            return self.open_version.state
        if self.last_version is not None:
            return "closed"
        if self.bundle is not None:
            return "built"
        job = pool().find(build_key(home(), self.name))
        return "not built" if job is None or job.has_ended else "being built"


class NextAction(NamedTuple):
    """What a researcher does next with a study: the page's name (`dashboard.pages.PAGES`) and its link's parts."""

    label: str
    page: str
    query: dict[str, str]


def find_next_action(study: Study) -> NextAction:
    """Return what comes next for a study: a running one is followed first, then faults are corrected."""
    here, name = {"study": study.name}, study.name
    if study.open_version is not None:
        label = "Resume it" if study.state == "paused" else "Monitor it"
        return NextAction(label, "monitor", {"study": name})
    if study.faults:
        return NextAction("See what is wrong", "studies", here)
    if study.last_version is not None:
        has_responses = any(count_finished(study.versions, mode) for mode in ("live", "sim"))
        source = {"results_source": name} if has_responses else {}
        return NextAction("See the results", "results", source)
    if study.bundle is None:
        return NextAction("Build it", "studies", here)
    if study.has_changed:
        return NextAction("Build it again", "studies", here)
    return NextAction("Preview and open it", "studies", here)


def list_studies(home: Path, researcher: Researcher) -> list[Study]:
    """List the studies that the account may see, by name, examples last; a damaged one is listed with its faults."""
    files, faults = _files(home)
    statuses = researcher.studies()
    built = {study_name(folder) for folder in bundles(home)}
    names = sorted({*files, *built, *faults, *(status.name for status in statuses)})
    seen = [name for name in names if researcher.sees(name)]
    studies = [_study(home, name, files.get(name), faults.get(name, []), statuses) for name in seen]
    examples = {study.name: study for study in studies if study.is_example}
    return [
        *(study for study in studies if not study.is_example),
        *(examples[name] for name in TEMPLATES if name in examples),
    ]


def _files(home: Path) -> tuple[dict[str, tuple[Path, config.StudyConfig]], dict[str, list[str]]]:
    files: dict[str, tuple[Path, config.StudyConfig]] = {}
    faults: dict[str, list[str]] = {}
    for path in study_files(home):
        try:
            settings = config.read(path)
        except ForetellError as error:
            faults.setdefault(path.stem, []).append(str(error))
        else:
            files[settings.study.name] = (path, settings)
    return files, faults


def _study(
    home: Path,
    name: str,
    file: tuple[Path, config.StudyConfig] | None,
    faults: Sequence[str],
    statuses: Sequence[StudyStatus],
) -> Study:
    bundle, wrong = None, list(faults)
    if any(study_name(folder) == name for folder in bundles(home)):
        try:
            bundle = bundle_named(home, name)
        except ForetellError as error:
            wrong.append(str(error))
    versions = tuple(status for status in statuses if status.name == name)
    path, settings = file or (None, None)
    return Study(name, path, settings, bundle, versions, tuple(wrong))


def count_participants(status: StudyStatus, conditions: Sequence[str]) -> pd.DataFrame:
    """Count per condition: quota, started and completed participants, and completed simulated participants.

    Where each participant sees every condition, per order of the conditions.
    """
    live, simulated = (status.sessions.get(mode, {}) for mode in ("live", "sim"))
    places = status.slots.get("live", {})
    rows = [
        {
            name_place(condition): format_condition(condition),
            "Quota": sum(places.get(condition, {}).values()),
            "Started": sum(live.get(condition, {}).values()),
            "Completed": live.get(condition, {}).get("done", 0),
            "Simulated": simulated.get(condition, {}).get("done", 0),
        }
        for condition in conditions
    ]
    return pd.DataFrame(rows)


def count_finished(versions: Sequence[StudyStatus], mode: str) -> int:
    """Count the participants of all versions of a study who completed it."""
    return sum(stages.get("done", 0) for version in versions for stages in version.sessions.get(mode, {}).values())


def draw_overview(studies: Sequence[Study]) -> str:
    """Draw the studies as a table in HTML, each a link: the workspace's own, then the examples."""
    rows = [
        {
            "group": "Examples" if study.is_example else "Your studies",
            "name": study.name,
            "subject": study.subject,
            "state": study.state,
            "colour": COLOURS[study.state],
            "trials": len(study.bundle.manifest.trials) if study.bundle else "",
            "participants": f"{count_finished(study.versions, 'live'):,}",
            "simulated": f"{count_finished(study.versions, 'sim'):,}",
        }
        for study in studies
    ]
    return load_templates(Path(__file__).parent).get_template("overview.html").render(rows=rows)
