"""The exported file against the service's table, and against what spreadsheets do to it."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from study.export import DICTIONARY, export, write_csv
from study.frames import COLUMNS
from study.service import Service
from study.simulate import simulate

MakeBundle = Callable[..., Path]


def test_every_column_is_described() -> None:
    assert tuple(DICTIONARY) == COLUMNS


def test_the_file_is_the_table(service: Service, bundle: MakeBundle, tmp_path: Path) -> None:
    study = service.open_study(bundle(), per_condition=1)
    simulate(service, study, 4, {"guesser": 1.0}, seed=1)
    path = export(service, study, tmp_path / "out" / "responses.csv", modes=("sim",))
    pd.testing.assert_frame_equal(pd.read_csv(path), service.responses(study, ("sim",)), check_dtype=False)
    assert json.loads((path.parent / "data-dictionary.json").read_text()) == DICTIONARY


def test_simulated_people_are_left_out_unless_asked_for(service: Service, bundle: MakeBundle, tmp_path: Path) -> None:
    study = service.open_study(bundle(), per_condition=1)
    simulate(service, study, 1, {"guesser": 1.0}, seed=1)
    assert len(pd.read_csv(export(service, study, tmp_path / "responses.csv"))) == 0


def test_formulas_are_disarmed_and_numbers_are_not(tmp_path: Path) -> None:
    """The list of leading characters is that of OWASP's page on CSV injection."""
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "plain", 'a "quoted", text', "ünïcode"]
    frame = pd.DataFrame({"text": texts, "number": [-1.5] * len(texts)})
    write_csv(frame, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    assert [row[0] for row in rows] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", *texts[5:]]
    assert {row[1] for row in rows} == {"-1.5"}
