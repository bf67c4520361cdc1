"""The command ``glmm``: what it prints, what its JSON holds, and the formulas it reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli.main import build_app
from study.analysis.models import mixed, printing
from tests.study.analysis import lme4
from tests.study.analysis.simulated import slopes


def run(frame: pd.DataFrame, folder: Path, *options: str) -> str:
    path = folder / "data.csv"
    frame.to_csv(path, index=False)
    done = CliRunner().invoke(build_app(), ["glmm", str(path), *options])
    assert done.exit_code == 0, done.output
    return done.output


def test_slopes_correlations_and_the_residual_are_printed_by_name(tmp_path: Path) -> None:
    text = run(slopes(11), tmp_path, "--formula", "time ~ x + (x|id)", "--family", "gaussian")
    for part in ("SD id (Intercept):", "SD id x:", "correlation id (Intercept) and x:", "SD residual:", "  t  "):
        assert part in text
    assert "0.0000" not in text
    model = mixed.fit(slopes(11), "y ~ x + (x|id)")
    assert printing.lines(model)[0].split() == ["term", "estimate", "SE", "z", "p"]
    found = json.loads(run(slopes(11), tmp_path, "--formula", "y ~ x + (x|id)", "--json", "-"))
    covariance = model.blocks[0].covariance
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert found["correlations"] == [
        {"group": "id", "terms": ["(Intercept)", "x"], "correlation": pytest.approx(expected, abs=1e-6)}
    ]


def test_an_infinite_estimate_is_called_infinite(tmp_path: Path) -> None:
    frame = slopes(3).assign(sure=lambda f: (f["x"] > 1).astype(int))
    frame.loc[frame["sure"] == 1, "y"] = 1
    text = run(frame, tmp_path, "--formula", "y ~ sure + (1|id)")
    line = next(line for line in text.splitlines() if line.startswith("sure"))
    assert line.split()[1:] == ["∞", "–", "–", "–"]
    found = json.loads(run(frame, tmp_path, "--formula", "y ~ sure + (1|id)", "--json", "-"))
    assert found["coefficients"][1]["limit"] == "infinity"


def test_ids_keep_their_leading_zeros(tmp_path: Path) -> None:
    """Catches ``01`` and ``1`` read as one participant."""
    frame = slopes(3)
    code = frame["id"].str[1:].astype(int)
    frame["id"] = np.where(np.arange(len(frame)) % 2 == 0, "0", "") + code.astype(str)
    found = json.loads(run(frame, tmp_path, "--formula", "y ~ x + (1|id)", "--json", "-"))
    model = mixed.fit(frame, "y ~ x + (1|id)")
    assert len(model.blocks[0].modes) == 60
    assert found["loglik"] == pytest.approx(model.loglik, abs=1e-6)


@lme4.needed
@pytest.mark.parametrize(
    ("formula", "theirs"),
    [("y ~ `my x` + (1|id)", "y ~ my_x + (1|id)"), ("y ~ x + offset(o) + (1|id)", "y ~ x + offset(o) + (1|id)")],
)
def test_quoted_names_and_offsets(tmp_path: Path, formula: str, theirs: str) -> None:
    frame = slopes(11)
    frame["o"] = np.random.default_rng(0).normal(0, 0.3, len(frame))
    other = lme4.fit(frame.assign(my_x=frame["x"]), theirs, tmp_path)
    found = json.loads(run(frame.assign(**{"my x": frame["x"]}), tmp_path, "--formula", formula, "--json", "-"))
    np.testing.assert_allclose([c["estimate"] for c in found["coefficients"]], other["estimate"], atol=1e-4)
    assert found["loglik"] == pytest.approx(other["loglik"][0], abs=1e-3)


def test_a_transformed_response_is_the_transformed_column(tmp_path: Path) -> None:
    frame = slopes(5)
    frame["wait"] = np.exp(frame["time"])
    options = ("--family", "gaussian", "--json", "-")
    direct = json.loads(run(frame, tmp_path, "--formula", "time ~ x + (1|id)", *options))
    through = json.loads(run(frame, tmp_path, "--formula", "log(wait) ~ x + (1|id)", *options))
    for a, b in zip(through["coefficients"], direct["coefficients"], strict=True):
        assert a["estimate"] == pytest.approx(b["estimate"], rel=1e-6)
    with pytest.raises(ForetellError, match="does not exist in row 1"):
        mixed.fit(frame.assign(wait=0.0), "log(wait) ~ x + (1|id)", family="gaussian")


def test_weights_are_numbers_of_responses(tmp_path: Path) -> None:
    """Oracle: the same responses counted by cbind."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"id": np.arange(200) % 20, "x": rng.normal(size=200), "n": rng.integers(1, 9, 200)})
    frame["hits"] = rng.binomial(frame["n"], 0.4)
    frame["share"], frame["misses"] = frame["hits"] / frame["n"], frame["n"] - frame["hits"]
    counted = mixed.fit(frame, "cbind(hits, misses) ~ x + (1|id)")
    weighted = mixed.fit(frame, "share ~ x + (1|id)", weights="n")
    assert weighted.loglik == pytest.approx(counted.loglik, abs=1e-6)
    np.testing.assert_allclose(
        [c.estimate for c in weighted.coefficients], [c.estimate for c in counted.coefficients], atol=1e-6
    )


def test_the_reference_level_is_the_one_chosen(tmp_path: Path) -> None:
    # Closed form without random effects: the intercept is the reference level's log-odds.
    frame = slopes(3)
    frame["f"] = np.random.default_rng(1).choice(["a", "b", "c"], len(frame))
    found = json.loads(run(frame, tmp_path, "--formula", "y ~ f", "--reference", "f=c", "--json", "-"))
    assert [c["term"] for c in found["coefficients"]] == ["(Intercept)", "fa", "fb"]
    assert found["coefficients"][0]["estimate"] == pytest.approx(logit(frame.loc[frame["f"] == "c", "y"].mean()))


def test_a_standard_deviation_of_next_to_nothing_is_called_singular() -> None:
    """Catches an SD of .0002 that passes for one: y does not depend on the group, by construction."""
    x = np.tile([0.0, 1.0], 120)
    frame = pd.DataFrame({"id": np.repeat(np.arange(20), 12).astype(str), "x": x, "y": np.tile([0, 1, 1, 0, 0, 1], 40)})
    model = mixed.fit(frame, "y ~ x + (1|id)")
    assert model.random[0].sd < 1e-3
    assert any("singular" in message for message in model.messages)


def test_numbers_in_small_units_keep_three_digits(tmp_path: Path) -> None:
    """Catches estimates of a response in small units printed as 0.0000; and a t that the JSON calls z."""
    frame = slopes(11).assign(time=lambda f: f["time"] * 1e-6)
    text = run(frame, tmp_path, "--formula", "time ~ x + (x|id)", "--family", "gaussian")
    assert "0.0000" not in text
    found = json.loads(run(frame, tmp_path, "--formula", "time ~ x + (x|id)", "--family", "gaussian", "--json", "-"))
    assert set(found["coefficients"][0]) == {"term", "estimate", "se", "t", "p", "df"}


def test_an_offset_takes_the_logarithm_of_a_column(tmp_path: Path) -> None:
    # Closed form without random effects: the rate is all events by all exposure.
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"exposure": rng.integers(1, 9, 200)}).assign(
        events=lambda f: rng.poisson(0.7 * f["exposure"])
    )
    formula = "events ~ 1 + offset(log(exposure))"
    found = json.loads(run(frame, tmp_path, "--formula", formula, "--family", "poisson", "--json", "-"))
    rate = frame["events"].sum() / frame["exposure"].sum()
    assert found["coefficients"][0]["estimate"] == pytest.approx(np.log(rate), abs=1e-6)
