"""The answers as a long table (CSV, Parquet or a Psych-DS data set), with a description of every column."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from study.collection import published as theirs
from study.collection.researcher import Researcher
from study.participation.open_workspace import Mode
from study.workspace.spreadsheets import csv_text

DICTIONARY: dict[str, dict[str, str]] = {
    "participant": {"meaning": "pseudonym of the person, the same in every row of a person"},
    "mode": {"meaning": "live: a participant; preview: the researcher looking; sim: a simulated person"},
    "condition": {"meaning": "condition the person was allocated to"},
    "saliency": {"meaning": "whether the condition shows saliency maps", "values": "0, 1"},
    "examples": {"meaning": "whether the condition shows examples", "values": "0, 1"},
    "trial": {"meaning": "place of the trial in this person's order, practice not counted", "unit": "1 is the first"},
    "item": {"meaning": "id of the trial in the frozen study"},
    "trial_type": {"meaning": "kind of trial", "values": "adv_incorrect, std_incorrect, std_correct"},
    "category": {"meaning": "what the AI chose (the target category)"},
    "alternative": {"meaning": "the other option"},
    "truth": {"meaning": "what the picture shows"},
    "choice": {"meaning": "what the person predicted the AI to choose"},
    "correct": {"meaning": "whether the person foretold the AI: choice equals category", "values": "0, 1"},
    "rt_ms": {
        "meaning": "from the second frame after the pictures were ready to the answer, on the browser's clock",
        "unit": "ms",
    },
    "confidence": {"meaning": "how sure the person was, where the study asks", "unit": "0 guessed, 1 certain"},
    "input": {"meaning": "how the answer was given", "values": "key, mouse, touch, sim"},
    "resumed": {"meaning": "whether the page was reloaded while this trial was on the screen", "values": "0, 1"},
    "n_exposures": {"meaning": "how often the trial was shown to this person until she answered"},
    "blur_ms": {"meaning": "how long the page was out of sight between onset and answer", "unit": "ms"},
    "frame_hz": {"meaning": "refresh rate of the screen as the page measured it", "unit": "Hz"},
    "dropped_frames": {"meaning": "frames that came late between onset and answer"},
    "clock_ms": {"meaning": "smallest step of the browser's clock", "unit": "ms"},
    "shown_sha256": {
        "meaning": "SHA-256 over the SHA-256 of every picture shown, one a line: target, map, left, right"
    },
    "study_hash": {"meaning": "SHA-256 of the frozen study the person took"},
    "received_at": {"meaning": "when the server received the answer", "unit": "ISO 8601, UTC"},
}

PARTICIPANTS: dict[str, dict[str, str]] = {
    "participant": {"meaning": "pseudonym of the person, as in the table of answers"},
    "mode": {"meaning": "live: a participant; preview: the researcher looking; sim: a simulated person"},
    "condition": {"meaning": "condition the person was allocated to; empty before"},
    "stage": {"meaning": "where the person is, or how she ended: done, declined, screened, full, expired, withdrawn"},
    "check_tries": {"meaning": "tries of the comprehension check"},
    "catch_missed": {"meaning": "catch trials not answered as they asked"},
    "excluded": {
        "meaning": "what excludes the participant: a rule of the study file (catch), or a researcher",
        "values": "catch, researcher",
    },
    "reason": {"meaning": "the researcher's reason for excluding the participant"},
    "answers": {"meaning": "answers kept, practice and catch trials included"},
    "resumes": {"meaning": "how often the study was opened again by its link"},
    "anticipations": {"meaning": "presses before 200 ms after the onset, which do not count as answers"},
    "slow": {"meaning": "trials at which the reminder of a slow answer came"},
    "blur_ms": {"meaning": "how long the page was out of sight during trials", "unit": "ms"},
    "over_quota": {"meaning": "whether the person finished after her place was given to another", "values": "0, 1"},
    "minutes": {"meaning": "from the consent to the end", "unit": "min"},
    "clock_offset_ms": {
        "meaning": "the server's clock minus the browser's when the page was last opened, by the quickest request of 3",
        "unit": "ms",
    },
    "round_trip_ms": {"meaning": "how long that request took, there and back", "unit": "ms"},
    "questionnaire": {"meaning": "answers to the questionnaire by item, as JSON"},
    "device": {"meaning": "families of browser and system, window, touch, as JSON"},
    "study_hash": {"meaning": "SHA-256 of the frozen study the person took"},
}


@dataclass(frozen=True)
class DescribedTable:
    """A table with what its columns mean; ``name`` is ``answers`` or ``people``."""

    name: str
    frame: pd.DataFrame
    columns: Mapping[str, Mapping[str, str]]


def tables(
    researcher: Researcher, study: str, modes: Sequence[Mode], *, published: bool = False
) -> tuple[DescribedTable, DescribedTable]:
    """The answers and the people, under our names or the published ones."""

    def build_table(name: str, frame: pd.DataFrame, columns: Mapping[str, Mapping[str, str]]) -> DescribedTable:
        if published:
            return DescribedTable(name, theirs.frame(frame), theirs.columns(columns))
        return DescribedTable(name, frame, columns)

    return (
        build_table("answers", researcher.responses(study, modes), DICTIONARY),
        build_table("people", researcher.load_participants(study, modes), PARTICIPANTS),
    )


def export(
    researcher: Researcher, study: str, path: Path, modes: Sequence[Mode] = ("live",), *, published: bool = False
) -> Path:
    """Write the answers to `path`; the people (``NAME.people.csv``) and two dictionaries beside it.

    A path that ends with ``.parquet`` makes Parquet files of both. With `published`, columns have the names of
    `study.collection.published`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    answers, people = tables(researcher, study, modes, published=published)
    researcher.note("exported", {"study": study, "modes": list(modes), "answers": len(answers.frame)})
    write(answers.frame, path)
    write(people.frame, path.with_name(f"{path.stem}.people{path.suffix}"))
    for name, table in (("data-dictionary.json", answers), ("people-dictionary.json", people)):
        text = json.dumps(table.columns, indent=2, ensure_ascii=False) + "\n"
        (path.parent / name).write_text(text, encoding="utf-8")
    return path


def write(frame: pd.DataFrame, path: Path) -> None:
    """A table as Parquet where the name says so, else as CSV."""
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        write_csv(frame, path)


def write_csv(frame: pd.DataFrame, path: Path, *, header: bool = True) -> None:
    """UTF-8, comma, a header line if wanted; texts that a spreadsheet would run as a formula get an apostrophe."""
    path.write_text(csv_text(frame, header=header), encoding="utf-8", newline="")
