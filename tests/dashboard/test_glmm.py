"""The command ``glmm`` over files as users have them: ids, names in backticks, decimal commas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli.main import build_app
from dashboard.notebook.models import glmm as fit_in_notebook


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Responses of 12 participants, three of whom differ by leading zeros alone, and three beyond float precision."""
    ids = ["7", "07", "007", "1", "01", "001", *(str(10**20 + k) for k in range(3)), "5", "6", "x"]
    rng = np.random.default_rng(3)
    rows = [
        (name, k % 2, round(rng.gamma(4, 0.4) + 0.01, 2), int(rng.random() < 1 / (1 + np.exp(-strength))))
        for name, strength in zip(ids, rng.normal(0.3, 1.2, len(ids)), strict=True)
        for k in range(30)
    ]
    return pd.DataFrame(rows, columns=["who", "x", "rt", "correct"])


def run(path: Path, formula: str, *options: str) -> Any:
    result = CliRunner().invoke(build_app(), ["glmm", str(path), "--formula", formula, "--json", "-", *options])
    if isinstance(result.exception, ForetellError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", ["my id", "worker-id", "id (code)", "1st"])
def test_ids_in_backticks_are_ids(frame: pd.DataFrame, tmp_path: Path, name: str) -> None:
    """Catches "007" and "7", or two long ids, merged into one participant; a plain name always kept them apart."""
    numbered = frame[frame["who"] != "x"]  # every id looks like a number
    letters = {who: f"p{k}" for k, who in enumerate(numbered["who"].unique())}
    numbered.assign(who=numbered["who"].map(letters)).to_csv(tmp_path / "plain.csv", index=False)
    numbered.rename(columns={"who": name, "x": "1B"}).to_csv(tmp_path / "quoted.csv", index=False)
    plain = run(tmp_path / "plain.csv", "correct ~ x + (1|who)")
    quoted = run(tmp_path / "quoted.csv", f"correct ~ `1B` + (1 | `{name}`)")
    assert quoted["loglik"] == pytest.approx(plain["loglik"], abs=1e-6)
    assert len(numbered["who"].unique()) == 11
    in_notebook = fit_in_notebook(
        pd.read_csv(tmp_path / "quoted.csv", dtype={name: str}), f"correct ~ `1B` + (1 | `{name}`)"
    )
    assert in_notebook.model.loglik == pytest.approx(plain["loglik"], abs=1e-6)


def test_a_column_of_decimal_commas_is_numbers(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Catches a factor with a level for each reaction time, and infinite estimates."""
    frame.to_csv(tmp_path / "point.csv", index=False)
    frame.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    frame.assign(rt=frame["rt"].astype(str).str.replace(".", ",")).to_csv(tmp_path / "quoted.csv", index=False)
    point, comma, quoted = (
        run(tmp_path / f"{name}.csv", "correct ~ rt + (1|who)") for name in ("point", "comma", "quoted")
    )
    assert len(point["coefficients"]) == 2
    assert comma == quoted == point


def test_commas_that_may_separate_thousands_are_refused_where_they_are_used(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    """Catches a factor of such numbers, and a refusal because of a column that nobody asked about."""
    frame.assign(rt="1,234").to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(ForetellError) as refused:
        run(tmp_path / "x.csv", "correct ~ rt + (1|who)")
    assert str(refused.value) == (
        "Column 'rt' has numbers whose commas may separate decimals or thousands, such as '1,234'. Write them with a "
        "decimal point and without separators of thousands, or say in the command what they separate: --comma decimal "
        "or --comma thousands. To read the column as text: --factor rt."
    )
    assert len(run(tmp_path / "x.csv", "correct ~ x + (1|who)")["coefficients"]) == 2


@pytest.mark.parametrize(("comma", "point"), [("decimal", 1000), ("thousands", 1)])
def test_the_command_says_what_commas_separate(frame: pd.DataFrame, tmp_path: Path, comma: str, point: int) -> None:
    """Catches a file that no option can open, and a comma that is read as the other one."""
    generator = np.random.default_rng(1)
    thousandths = generator.integers(1000, 9999, len(frame))
    written = [f"{n // 1000},{n % 1000:03}" for n in thousandths]
    frame.assign(rt=written).to_csv(tmp_path / "x.csv", index=False, sep=";")
    frame.assign(rt=thousandths / point).to_csv(tmp_path / "point.csv", index=False)
    read = run(tmp_path / "x.csv", "correct ~ rt + (1|who)", "--comma", comma)
    assert read == run(tmp_path / "point.csv", "correct ~ rt + (1|who)")


def test_missing_values_say_what_counts_as_missing(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Catches the text NA taken for an empty cell without a word."""
    frame.assign(x=frame["x"].astype(str).mask(frame.index == 4, "NA")).to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(ForetellError, match=r"'x' has 1 missing values.* empty cells and NA, NaN, nan are missing"):
        run(tmp_path / "x.csv", "correct ~ x + (1|who)")
