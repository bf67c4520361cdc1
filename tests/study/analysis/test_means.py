"""Estimated marginal means and contrasts against R's emmeans, mvtnorm and marginaleffects, and closed forms.

The numbers of R and the models' coefficients are in ``oracles/means.json``, made by ``oracles/means.R``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm, studentized_range, t
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli.main import build_app
from study.analysis.means.adjustment import MaximumT
from study.analysis.means.effects import estimate_effects
from study.analysis.means.means import EstimatedMeans, estimate_means
from study.analysis.means.request import list_contrasts
from study.analysis.models import estimability, formula, mixed
from study.analysis.models.records import Coefficient, MixedModel, RandomBlock
from study.analysis.planned import contrasts
from study.analysis.planned.contrasts import Contrast
from tests.study.analysis.simulated import TYPES, study

CASES = {case["name"]: case for case in json.loads((Path(__file__).parent / "oracles" / "means.json").read_text())}
SAME = 1e-6
"""What equal to R means here."""


@cache
def load(name: str) -> tuple[pd.DataFrame, MixedModel]:
    """The rows of a case, and a model with the coefficients and the covariance that R has."""
    case = CASES[name]
    frame = pd.DataFrame(case["data"])
    factors = {name: levels for name, levels in case["levels"].items() if name in frame}
    frame = frame.assign(**{name: pd.Categorical(frame[name], categories=levels) for name, levels in factors.items()})
    design, names = mixed.glmm.model_matrix(frame, formula.extract_fixed_effects(case["formula"]))
    kept = np.array([term in case["terms"] for term in names])
    aliased = estimability.find_aliased_directions(np.asarray(design, dtype=np.float64), kept)
    order = [case["terms"].index(term) for term, keep in zip(names, kept, strict=True) if keep]
    model = MixedModel(
        formula=case["formula"],
        coefficients=tuple(
            Coefficient(case["terms"][k], case["coefficients"][k], None, None, None, case["df"]) for k in order
        ),
        random=(),
        loglik=0.0,
        df=0,
        n=len(frame),
        converged=True,
        dropped=tuple(term for term, keep in zip(names, kept, strict=True) if not keep),
        family=case["family"],
        link=case["link"],
        covariance=np.array(case["covariance"])[np.ix_(order, order)],
        aliased=aliased,
        undetermined=aliased,
        levels=formula.list_levels(frame, case["formula"]),
    )
    return frame, model


def estimate(name: str, asked: str, **options: Any) -> EstimatedMeans:
    """The means of a case with the coefficients that R has."""
    return estimate_means(*load(name), asked, **options)


COLUMNS = {
    **dict.fromkeys(("emmean", "prob", "rate"), "estimate"),
    "SE": "se",
    **dict.fromkeys(("asymp.LCL", "lower.CL"), "low"),
    **dict.fromkeys(("asymp.UCL", "upper.CL"), "high"),
    **dict.fromkeys(("z.ratio", "t.ratio"), "z"),
}
"""Ours for those of emmeans, which has the others by the same name."""


def as_list(values: Any) -> list[Any]:
    """A vector of R, which writes a single value alone."""
    return values if isinstance(values, list) else [values]


def as_numbers(values: Any) -> np.ndarray:
    """A vector of R, which writes infinite degrees of freedom and missing values as text."""
    return np.array([np.nan if value in (None, "NA", "Inf") else value for value in as_list(values)], dtype=float)


def check(ours: pd.DataFrame, theirs: dict[str, Any], p: str = "p") -> None:
    """Every number of a table of emmeans, and its labels in the same order."""
    for name, values in theirs.items():
        mine = p if name == "p.value" else COLUMNS.get(name, name)
        if mine in ("z", p) and mine not in ours:
            continue  # the test of a mean against 0
        if pd.api.types.is_float_dtype(ours[mine]):
            np.testing.assert_allclose(ours[mine], as_numbers(values), atol=SAME, rtol=0, err_msg=name)
        else:
            assert [str(value) for value in ours[mine]] == [str(value) for value in as_list(values)]


@pytest.mark.parametrize("name", CASES)
def test_means_and_contrasts_are_those_of_emmeans(name: str) -> None:
    """Catches any other weighting, order, scale, correction or interval than that of emmeans, to 1e-6."""
    for theirs in CASES[name]["results"]:
        options = {"asked": theirs["spec"], "scale": theirs["scale"]}
        made = estimate(name, **options, adjust="none")
        check(made.means, theirs["means"])
        check(made.contrasts, theirs["none"])
        for how in {"holm", *(["tukey"] if theirs["scale"] == "link" else [])} & set(theirs):  # Tukey's takes long
            check(estimate(name, **options, adjust=how).contrasts, theirs[how], f"p_{how}")
        if "reference" in theirs:
            check(estimate(name, **options, contrasts=["reference"]).contrasts, theirs["reference"], "p_holm")
        if "custom" in theirs:
            levels = made.contrasts["contrast"].str.split(" - ")
            first, others = levels[0][0], [pair[1] for pair in levels if pair[0] == levels[0][0]]
            text = f"{first}=1, " + ", ".join(f"{other}=-1/{len(others)}" for other in others)
            check(estimate(name, **options, contrasts=[text]).contrasts.assign(contrast="custom"), theirs["custom"])


@pytest.mark.parametrize(
    ("name", "k"), [(name, k) for name, case in CASES.items() for k, r in enumerate(case["results"]) if "max_t" in r]
)
def test_simultaneous_intervals_are_those_of_mvtnorm(name: str, k: int) -> None:
    """Catches a wrong correlation, rank or degrees of freedom. Oracle: pmvt of R's mvtnorm, which is good to 1e-6."""
    theirs = CASES[name]["results"][k]
    made = estimate(name, theirs["spec"], adjust="mvt").contrasts
    np.testing.assert_allclose(made["z"].abs(), theirs["max_t"]["t"], atol=SAME)
    np.testing.assert_allclose(made["p_mvt"], theirs["max_t"]["p"], atol=2 * SAME)
    half = (made["high"] - made["low"]) / 2 / made["se"]
    np.testing.assert_allclose(half, theirs["max_t"]["critical"], atol=1e-5)


@pytest.mark.parametrize(("k", "df", "error"), [(2, 7.5, 1e-12), (4, np.inf, 1e-6), (4, 7.5, 1e-6), (6, 30.0, 5e-5)])
def test_max_t_of_equal_means_is_tukeys(k: int, df: float, error: float) -> None:
    """Catches an inaccurate integral at each rank. Oracle: the studentized range, exact for independent equal means."""
    pairs = np.array([np.eye(k)[i] - np.eye(k)[j] for i in range(k) for j in range(i + 1, k)])
    largest = MaximumT(pairs @ pairs.T, df)
    for value in (1.2, 2.6, 3.4):
        exact = studentized_range.sf(np.sqrt(2) * value, k, df)
        assert largest.compute_tail(value) == pytest.approx(exact, abs=error)
    assert largest.compute_tail(largest.compute_quantile(0.95)) == pytest.approx(0.05, abs=1e-8)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["effects"]])
def test_effects_are_those_of_marginaleffects(name: str) -> None:
    """Catches effects of the means in place of means of the effects. Oracle: avg_comparisons at random effects of 0."""
    for theirs in CASES[name]["effects"]:
        ours = estimate_effects(*load(name), theirs["effect"], scale="response")
        rows = theirs["rows"]
        by = theirs["effect"].partition(" | ")[2]
        names = [str(c).replace("mean(", "").replace(")", "").split(" - ")[0] for c in as_list(rows["contrast"])]
        names = ["+1" if name == "custom" else name for name in names]
        groups = rows[by] if by else [""] * len(names)
        table = pd.DataFrame({"value": names, "by": groups} | {n: as_numbers(rows[n]) for n in rows if n[0] in "es"})
        table = table.set_index(["value", "by"]).sort_index()
        mine = ours.assign(value=ours["value"].astype(str), by=ours[by].astype(str) if by else "")
        mine = mine.set_index(["value", "by"]).sort_index()
        assert list(mine.index) == list(table.index)
        np.testing.assert_allclose(mine["effect"], table["estimate"], atol=SAME)
        np.testing.assert_allclose(mine["se"], table["std.error"], atol=SAME)


def test_population_means_of_every_link_average_over_the_random_effects() -> None:
    """Catches a probit model averaged as a logit one, and rates without half the variance.

    Oracle: a fine Riemann sum over the normal density of the random effects.
    """
    sd = 1.3
    effect = np.linspace(-9, 9, 20001) * sd
    density = norm.pdf(effect, scale=sd) * (effect[1] - effect[0])
    block = RandomBlock("participant", ("(Intercept)",), np.array([[sd**2]]), pd.DataFrame())
    for name, asked, inverse in (
        ("probit", "explanation * trial_type", norm.cdf),
        ("poisson", "wool * tension", np.exp),
        ("two_factors", "saliency * examples * trial_type", expit),
    ):
        frame, model = load(name)
        model = replace(model, formula=f"{model.formula} + (1 | participant)", blocks=(block,))
        options = {"contrasts": [], "level": 0.9}
        links = estimate_means(frame, model, asked, **options).means["estimate"]
        averaged = estimate_means(frame, model, asked, scale="population", **options).means
        expected = [float(density @ inverse(link + effect)) for link in links]
        np.testing.assert_allclose(averaged["estimate"], expected, rtol=1e-6)


@pytest.fixture(scope="module")
def slopes() -> tuple[pd.DataFrame, MixedModel]:
    frame = study(24, 6, 8, seed=5, sd=0.8)
    frame = frame.assign(trial_type=pd.Categorical(frame["trial_type"], categories=list(TYPES)))
    return frame, mixed.fit(
        frame, "correct ~ trial_type * saliency + examples + (1 | participant) + (saliency || category)"
    )


def test_degrees_of_freedom_are_those_of_planned_contrasts(slopes: tuple[pd.DataFrame, MixedModel]) -> None:
    """Catches z where the default analysis has t: the same contrast as in the plan has the same interval and p."""
    made = estimate_means(*slopes, "saliency | trial_type", contrasts=["reference"], adjust="none")
    planned = contrasts.table(slopes[1], [Contrast("saliency", "none", (kind,)) for kind in TYPES])
    assert (planned["df"] < 200).all()
    for column in ("estimate", "se", "df", "low", "high", "z", "p"):
        np.testing.assert_allclose(made.contrasts[column], planned[column], rtol=1e-9)
    assert "Intervals and tests are t, with the degrees of freedom (Satterthwaite) shown." in made.notes
    asked = "saliency | trial_type * examples"
    points = estimate_means(*slopes, asked, contrasts=["reference"], scale="population").contrasts
    assert list(points.iloc[0][["trial_type", "examples"]]) == [TYPES[0], 0]  # the plan's condition without examples
    averaged = contrasts.table(slopes[1], [Contrast("saliency", "none", (TYPES[0],))]).iloc[0]
    assert points["estimate"].iloc[0] == pytest.approx(averaged["points"] / 100)


def test_contrasts_with_different_degrees_of_freedom_have_the_careful_maximum(
    slopes: tuple[pd.DataFrame, MixedModel],
) -> None:
    """Catches one df taken for all: the max-t correction takes the fewest, and never claims more than Bonferroni's."""
    single = estimate_means(*slopes, "trial_type * saliency", contrasts=["reference"], adjust="none").contrasts
    joint = estimate_means(*slopes, "trial_type * saliency", contrasts=["reference"], adjust="mvt").contrasts
    assert single["df"].nunique() > 1
    lowest = 2 * t(single["df"].min()).sf(single["z"].abs())
    assert (joint["p_mvt"] >= lowest - 1e-9).all()
    assert (joint["p_mvt"] <= np.minimum(1, len(single) * lowest) + 1e-9).all()


def test_rates_are_of_one_unit_of_exposure() -> None:
    """Catches an offset that is averaged or left in. Closed form: all events by all exposure, of each group."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"exposure": rng.integers(1, 9, 200), "arm": np.tile(["a", "b"], 100)})
    frame["events"] = rng.poisson(0.7 * frame["exposure"])
    model = mixed.fit(frame, "events ~ arm + offset(log(exposure))", family="poisson")
    made = estimate_means(frame, model, "arm", scale="response")
    sums = frame.groupby("arm")[["events", "exposure"]].sum()
    np.testing.assert_allclose(made.means["estimate"], sums["events"] / sums["exposure"], rtol=1e-6)
    assert "Offsets are 0: log_exposure." in made.notes


def test_separated_cells_have_a_probability_and_no_interval() -> None:
    """Catches a finite interval of an infinite estimate, and probabilities lost with it."""
    frame = study(24, 8, 8, seed=3, sd=0.8)
    certain = frame.assign(correct=frame["correct"].where(frame["trial_type"] != "std_correct", 1))
    model = mixed.fit(certain, "correct ~ trial_type + saliency + (1 | participant)")
    sure = estimate_means(certain, model, "trial_type", scale="population").means.set_index("trial_type")
    assert sure.loc["std_correct", "estimate"] == pytest.approx(1, abs=1e-6)
    assert sure.loc["std_correct", ["se", "low", "high"]].isna().all()
    assert sure.drop("std_correct").notna().all(axis=None) or sure["df"].isna().all()
    made = estimate_means(certain, model, "trial_type")
    assert made.means.set_index("trial_type").loc["std_correct", ["estimate", "se"]].isna().all()
    assert made.contrasts["estimate"].notna().sum() == 1
    assert made.notes[-1].endswith("all its responses are the same: std_correct.")


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("probit", {"asked": "maps"}, "'maps' is no factor of the model"),
        ("probit", {"asked": "x"}, "'x' is a continuous predictor"),
        ("probit", {"asked": "explanation | x"}, "'x' is a continuous predictor"),
        ("probit", {"asked": "explanation | "}, "cannot be read: write 'a', 'a * b' or 'a | b'"),
        ("probit", {"asked": "explanation * explanation"}, "name a factor twice"),
        (
            "probit",
            {"asked": "explanation", "contrasts": ["ghost - none"]},
            "names 'ghost', which is no level; there",
        ),
        ("probit", {"asked": "explanation", "contrasts": ["ghost=1, none=-1"]}, "names 'ghost', which is no level"),
        ("probit", {"asked": "explanation", "contrasts": ["both"]}, "cannot be read: write 'b - a'"),
        ("probit", {"asked": "explanation", "contrasts": ["both=1, none=-1/2"]}, "sum to 0.5 instead of 0"),
        ("probit", {"asked": "explanation", "contrasts": ["both=1, none=-a"]}, "weight '-a', which is no number"),
        ("probit", {"asked": "explanation", "contrasts": ["reference"], "adjust": "tukey"}, "corrects all pairs"),
        (
            "empty_cell",
            {"asked": "trial_type | explanation", "contrasts": ["right - standard"]},
            "at both: a combination",
        ),
    ],
)
def test_what_cannot_be_estimated_is_refused_in_one_sentence(name: str, options: Any, sentence: str) -> None:
    """Catches a traceback, or a number for something else, where a request is wrong."""
    with pytest.raises(ForetellError) as refused:
        estimate(name, **options)
    assert sentence in str(refused.value)


def test_a_level_may_contain_the_sign_of_a_difference() -> None:
    """Catches "pre - test" read as two levels."""
    names, weights = list_contrasts(["post - pre - test"], ["pre - test", "post"])
    assert names == ["post - pre - test"]
    assert weights.tolist() == [[-1, 1]]


def test_the_command_writes_means_contrasts_and_effects(tmp_path: Path) -> None:
    """Catches options that the command drops, and NaN in its JSON. Oracle: the functions themselves."""
    frame, _ = load("mixed_logit")
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = [
        "glmm",
        str(tmp_path / "data.csv"),
        "--formula",
        "correct ~ trial_type + explanation + x + (1|participant)",
    ]
    asked = ["--means", "explanation | trial_type", "--contrast", "both - none", "--adjust", "none"]
    runner, app = CliRunner(), build_app(["glmm"])
    printed = runner.invoke(app, [*words, *asked, "--effects", "x", "--scale", "response"])
    assert printed.exit_code == 0, printed.output
    for part in ("Means of explanation | trial_type", "both - none", "Held at the mean: x = ", "+1"):
        assert part in printed.output
    written = json.loads(runner.invoke(app, [*words, *asked, "--effects", "x", "--json", "-"]).stdout)
    data = pd.read_csv(tmp_path / "data.csv")
    model = mixed.fit(data, words[-1])
    made = estimate_means(data, model, asked[1], contrasts=[asked[3]], adjust="none")
    assert [row["estimate"] for row in written["means"][0]["contrasts"]] == pytest.approx(
        list(made.contrasts["estimate"])
    )
    assert written["means"][0]["contrasts"][0]["df"] is None
    assert written["effects"][0][0]["effect"] == pytest.approx(estimate_effects(data, model, "x")["effect"].iloc[0])
    alone = runner.invoke(app, [*words, "--contrast", "both - none"])
    assert "--contrast needs --means" in str(alone.exception)
