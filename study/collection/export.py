"""The responses as a long table (CSV, Parquet or a Psych-DS data set), with a description of every column."""

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
    "participant": {"meaning": "pseudonym of the participant, the same in all their rows"},
    "mode": {"meaning": "live: a participant; preview: a researcher's preview; sim: a simulated participant"},
    "condition": {"meaning": "condition the participant was allocated to"},
    "saliency": {"meaning": "whether the condition shows saliency maps", "values": "0, 1"},
    "examples": {"meaning": "whether the condition shows examples", "values": "0, 1"},
    "trial": {
        "meaning": "position of the trial in the participant's order, without practice",
        "unit": "1 is the first",
    },
    "item": {"meaning": "id of the trial in the frozen study"},
    "trial_type": {"meaning": "kind of trial", "values": "adv_incorrect, std_incorrect, std_correct"},
    "category": {"meaning": "class the AI predicted (the target category)"},
    "alternative": {"meaning": "the foil: the other option"},
    "truth": {"meaning": "true class of the image"},
    "choice": {"meaning": "option the participant chose as the AI's prediction"},
    "correct": {"meaning": "whether the participant predicted the AI: choice equals category", "values": "0, 1"},
    "rt_ms": {
        "meaning": "from the second frame after the images were ready to the response, on the browser's clock",
        "unit": "ms",
    },
    "confidence": {"meaning": "the participant's confidence, if the study asks", "unit": "0 guessed, 1 certain"},
    "input": {"meaning": "input device of the response", "values": "key, mouse, touch, sim"},
    "resumed": {"meaning": "whether the page was reloaded while this trial was on the screen", "values": "0, 1"},
    "n_exposures": {"meaning": "how often the trial was shown to this participant before their response"},
    "blur_ms": {"meaning": "how long the page was hidden between onset and response", "unit": "ms"},
    "frame_hz": {"meaning": "refresh rate of the screen as the page measured it", "unit": "Hz"},
    "dropped_frames": {"meaning": "late frames between onset and response"},
    "clock_ms": {"meaning": "smallest step of the browser's clock", "unit": "ms"},
    "shown_sha256": {
        "meaning": "SHA-256 over the SHA-256 of every image shown, one per line: target, heatmap, left, right"
    },
    "study_hash": {"meaning": "SHA-256 of the frozen study the participant took"},
    "received_at": {"meaning": "when the server received the response", "unit": "ISO 8601, UTC"},
}

PARTICIPANTS: dict[str, dict[str, str]] = {
    "participant": {"meaning": "pseudonym of the participant, as in the table of responses"},
    "mode": {"meaning": "live: a participant; preview: a researcher's preview; sim: a simulated participant"},
    "condition": {"meaning": "condition the participant was allocated to; empty before the allocation"},
    "stage": {"meaning": "current stage, or how they finished: done, declined, screened, full, expired, withdrawn"},
    "check_tries": {"meaning": "attempts at the comprehension check"},
    "catch_missed": {"meaning": "attention checks failed"},
    "excluded": {
        "meaning": "what excludes the participant: a rule of the study file (catch), or a researcher",
        "values": "catch, researcher",
    },
    "reason": {"meaning": "the researcher's reason for excluding the participant"},
    "answers": {"meaning": "responses saved, including practice and attention checks"},
    "resumes": {"meaning": "how often the participant resumed the study by its link"},
    "anticipations": {"meaning": "key presses within 200 ms of the onset, which do not count as responses"},
    "slow": {"meaning": "trials on which the reminder of a slow response appeared"},
    "blur_ms": {"meaning": "how long the page was hidden during trials", "unit": "ms"},
    "over_quota": {"meaning": "whether the participant finished after their place was reallocated", "values": "0, 1"},
    "minutes": {"meaning": "time from the consent to the end", "unit": "min"},
    "clock_offset_ms": {
        "meaning": "the server's clock minus the browser's when the page was last opened, by the fastest of 3 requests",
        "unit": "ms",
    },
    "round_trip_ms": {"meaning": "round-trip time of that request", "unit": "ms"},
    "questionnaire": {"meaning": "responses to the questionnaire by item, as JSON"},
    "device": {"meaning": "families of browser and operating system, window, touch, as JSON"},
    "study_hash": {"meaning": "SHA-256 of the frozen study the participant took"},
}


@dataclass(frozen=True)
class DescribedTable:
    """A table with the meaning of its columns; ``name`` is ``answers`` or ``people``."""

    name: str
    frame: pd.DataFrame
    columns: Mapping[str, Mapping[str, str]]


def tables(
    researcher: Researcher, study: str, modes: Sequence[Mode], *, published: bool = False
) -> tuple[DescribedTable, DescribedTable]:
    """Return the tables of responses and of participants, with Foretell's column names or the published ones."""

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
    """Write the responses to `path`, with the participants (``NAME.people.csv``) and two dictionaries next to it.

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
    """Write a table as Parquet if the name ends so, else as CSV."""
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        write_csv(frame, path)


def write_csv(frame: pd.DataFrame, path: Path, *, header: bool = True) -> None:
    """Write UTF-8 with commas, with a header or without; text that a spreadsheet would run gets an apostrophe."""
    path.write_text(csv_text(frame, header=header), encoding="utf-8", newline="")
