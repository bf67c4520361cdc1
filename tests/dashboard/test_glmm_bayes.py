"""The command ``glmm --bayes``: what it prints, and what it refuses before it draws."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli.main import build_app
from dashboard.notebook.models import glmm as fit_in_notebook

FORMULA = "cbind(hits, misses) ~ x"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bayes") / "counts.csv"
    pd.DataFrame({"x": [0, 0, 1, 1], "hits": [5, 7, 9, 11], "misses": [5, 3, 0, 0], "who": "a"}).to_csv(
        path, index=False
    )
    return path


def run(file: Path, *options: str, formula: str = FORMULA) -> str:
    result = CliRunner().invoke(build_app(), ["glmm", str(file), "--formula", formula, *options])
    if isinstance(result.exception, ForetellError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_prints_table_diagnosis_and_contrasts(file: Path, tmp_path: Path) -> None:
    """Catches a prior that is not the one given, and contrasts without interval or probabilities."""
    options = ["--bayes", "--prior-sd", "0.5", "--draws", "800", "--means", "x", "--contrast", "reference"]
    printed = run(file, *options, "--equivalence", "5")
    assert "normal (0, 0.5) for each effect" in printed
    assert "4 chains of 800 draws" in printed
    assert "The fit can be believed: R-hat at most 1.0" in printed
    assert "P(above 0)  P(within)" in printed
    assert "within 5 percentage points" in printed
    made = fit_in_notebook(pd.read_csv(file), FORMULA).bayes(prior_sd=0.5, draws=800)
    assert str(made).splitlines()[1].split() == printed.splitlines()[1].split()
    means = made.means("x", contrasts=["reference"], bounds=5)
    assert str(means).splitlines()[-1] == printed.splitlines()[-1]
    assert means.table.loc[0, "points_low"] == pytest.approx(-made.means("x").table.loc[0, "points_high"])


def test_a_gaussian_model_is_in_the_responses_unit(file: Path) -> None:
    """Catches a family that is fitted as binomial, and a result without the prior of the residual."""
    printed = run(file, "--bayes", "--family", "gaussian", "--means", "x", "--equivalence", "5", formula="hits ~ x")
    assert "SD residual" in printed
    assert "Priors (SDs of the response): " in printed
    assert "half-normal (1) for the residual standard deviation." in printed
    assert "within 5 in the response's unit." in printed
    assert "percentage points" not in printed
    made = fit_in_notebook(pd.read_csv(file), "hits ~ x", family="gaussian").bayes()
    assert str(made).splitlines()[3].split() == printed.splitlines()[3].split()
    assert made.table["parameter"].tolist() == ["(Intercept)", "x", "SD residual"]


def test_a_fit_that_is_not_to_be_believed_gives_no_differences(file: Path, tmp_path: Path) -> None:
    """Catches differences of chains that hardly moved."""
    target = tmp_path / "made.json"
    run(file, "--bayes", "--draws", "100", "--means", "x", "--json", str(target))
    made = json.loads(target.read_text())
    assert made["bayes"]["believable"] is False
    assert "Remedy: take more draws" in made["bayes"]["diagnosis"]
    assert "means" not in made
    assert [row["parameter"] for row in made["bayes"]["parameters"]] == ["(Intercept)", "x"]
    assert np.isfinite([row["low"] for row in made["bayes"]["parameters"]]).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--bayes", "--prior-sd", "0"], r"prior SD of effects is 0, which is no proper prior"),
        (["--bayes", "--draws", "10"], r"10 draws of each chain are too few"),
        (["--bayes", "--family", "poisson"], r"--family does not apply to a Bayesian fit"),
        (["--bayes", "--adjust", "mvt"], r"--adjust does not apply to a Bayesian fit"),
        (["--draws", "500"], r"--draws is an option of Bayesian fits: add --bayes"),
        (["--bayes", "--equivalence", "5"], r"--equivalence needs --means"),
    ],
)
def test_what_does_not_apply_is_refused(file: Path, options: list[str], said: str) -> None:
    """Catches an option that is ignored in silence."""
    with pytest.raises(ForetellError, match=said):
        run(file, *options)


def test_one_participant_and_a_missing_extra_are_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a standard deviation of one participant, and a traceback where NumPyro is not installed."""
    with pytest.raises(ForetellError, match="'who' has one level only, 'a'"):
        run(file, "--bayes", formula=f"{FORMULA} + (1|who)")
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(ForetellError, match=r"-m pip install -r requirements-bayes\.txt"):
        run(file, "--bayes")


def test_a_separated_model_points_to_the_bayesian_fit(file: Path) -> None:
    """Catches infinite estimates without a remedy."""
    assert "A Bayesian fit has intervals of these coefficients: add --bayes." in run(file)
    assert "--bayes" not in run(file, formula="cbind(hits, misses) ~ 1")
