"""What a design without all four conditions, or with certain responses, does and does not determine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.means.effects import average_effects
from study.analysis.models import estimability, mixed
from study.analysis.planned import contrasts
from study.analysis.planned.contrasts import Contrast
from study.analysis.report import results
from study.analysis.responses import reading as responses
from study.plan.preregistration import AnalysisPlan, PlannedContrast
from tests.study.analysis import lme4
from tests.study.analysis.simulated import TYPES, analyze_as_in_the_paper, slow_fit, study

CODES = {"none": (0, 0), "saliency": (1, 0), "examples": (0, 1), "both": (1, 1)}
RANDOM = "(1|participant) + (1|category)"


def participants_of(*conditions: str, seed: int = 5) -> pd.DataFrame:
    """Responses of participants in some of the four conditions."""
    frame = responses.prepare(study(48, 8, 5, seed=seed)).frame
    return frame[frame["condition"].isin(conditions)].reset_index(drop=True)


def fit_cell_means(frame: pd.DataFrame) -> tuple[dict[tuple[str, str], int], np.ndarray, np.ndarray]:
    """Fit a mean for each cell that has responses, by a slow and independent Laplace likelihood."""
    cells = list(dict.fromkeys(zip(frame["condition"], frame["trial_type"], strict=True)))
    place = {cell: k for k, cell in enumerate(cells)}
    codes = [place[cell] for cell in zip(frame["condition"], frame["trial_type"], strict=True)]
    groups = [pd.factorize(frame[name])[0] for name in ("participant", "category")]
    estimates, errors, _, _ = slow_fit(np.eye(len(cells))[codes], groups, frame["correct"].to_numpy(float))
    return place, estimates, errors


@pytest.mark.parametrize(
    ("conditions", "pairs"),
    [
        (("none", "both"), ["both - none"]),
        (("none", "examples"), ["examples - none"]),
        (("saliency", "examples"), ["examples - saliency"]),
        (("none", "examples", "both"), ["examples - none", "both - none"]),
        (("saliency", "examples", "both"), ["examples - saliency", "both - saliency"]),
    ],
)
def test_contrasts_are_of_conditions_that_somebody_was_in(conditions: tuple[str, ...], pairs: list[str]) -> None:
    """Catches a contrast of "both" under the name "saliency", and one that could be estimated but was blank."""
    frame = participants_of(*conditions)
    wanted = contrasts.list_default(frame)
    assert [one.name for one in wanted] == [f"{pair}, {kind}" for kind in TYPES for pair in pairs]
    found = contrasts.table(analyze_as_in_the_paper(frame).largest, wanted)
    place, means, _ = fit_cell_means(frame)
    expected = [means[place[c.more, c.trial_types[0]]] - means[place[c.less, c.trial_types[0]]] for c in wanted]
    np.testing.assert_allclose(found["estimate"], expected, atol=2e-3)
    assert found.drop(columns="df").notna().all(axis=None)


@lme4.needed
def test_standard_errors_of_an_incomplete_design_are_those_of_lme4(tmp_path: Path) -> None:
    """Catches variances of other columns than those that were kept."""
    frame = participants_of("none", "examples", "both")
    coded = frame.assign(cell=frame["condition"] + "_" + frame["trial_type"].astype(str))
    more = "out$v <- number(as.matrix(vcov(model)))"
    theirs = lme4.fit(coded, f"correct ~ 0 + cell + {RANDOM}", tmp_path, more=more)
    place = {str(term).removeprefix("cell"): k for k, term in enumerate(theirs["terms"])}
    covariance = np.reshape(theirs["v"], (len(place), len(place)))
    wanted = [*contrasts.list_default(frame), Contrast("both", "examples", ("std_correct",))]
    found = contrasts.table(analyze_as_in_the_paper(frame).largest, wanted)
    for one, row in zip(wanted, found.itertuples(), strict=True):
        weights = np.zeros(len(place))
        weights[[place[f"{one.more}_{one.trial_types[0]}"], place[f"{one.less}_{one.trial_types[0]}"]]] = 1, -1
        assert row.estimate == pytest.approx(weights @ theirs["estimate"], abs=2e-3)
        assert row.se == pytest.approx(np.sqrt(weights @ covariance @ weights), rel=2 * lme4.SE_RTOL)


def test_what_can_be_estimated_is_what_adds_nothing_to_the_rank_of_the_design() -> None:
    """Catches a rule that reads the names of dropped columns: the rank decides, of single cells and differences."""
    frame = participants_of("none", "saliency", "both")
    model = analyze_as_in_the_paper(frame).largest
    design = model.design_with_dropped(frame)
    every = pd.DataFrame(
        [(kind, *CODES[name]) for kind in TYPES for name in CODES], columns=["trial_type", "saliency", "examples"]
    )
    rows = model.design_with_dropped(every)
    rng = np.random.default_rng(0)
    weights = np.vstack([rows, rows[:, None].repeat(len(rows), 1).reshape(-1, rows.shape[1]) - np.tile(rows, (12, 1))])
    weights = np.vstack(
        [weights, rng.integers(-2, 3, (40, rows.shape[1])), rng.normal(size=(20, len(design))) @ design]
    )
    rank = np.linalg.matrix_rank(design)
    expected = [np.linalg.matrix_rank(np.vstack([design, one])) == rank for one in weights]
    assert set(expected) == {True, False}
    np.testing.assert_array_equal(estimability.is_estimable(weights, model), expected)


def test_the_difference_of_two_infinite_coefficients_is_estimated() -> None:
    """Catches NaN for both - saliency where every response without an explanation is correct: it has a finite value."""
    frame = participants_of(*CODES, seed=11)
    certain = (frame["condition"] == "none") & (frame["trial_type"] == "std_correct")
    frame = frame.assign(correct=frame["correct"].where(~certain, 1))
    model = analyze_as_in_the_paper(frame).largest
    assert {"trial_typestd_correct", "trial_typestd_correct:saliency"} <= set(model.diverging)
    wanted = [Contrast(more, less, ("std_correct",)) for more, less in (("both", "saliency"), ("both", "none"))]
    found = contrasts.table(model, wanted)
    place, means, errors = fit_cell_means(frame[~certain].reset_index(drop=True))
    finite = found.iloc[0]
    expected = means[place["both", "std_correct"]] - means[place["saliency", "std_correct"]]
    assert finite["estimate"] == pytest.approx(expected, abs=2e-3)
    largest = np.hypot(errors[place["both", "std_correct"]], errors[place["saliency", "std_correct"]])
    assert 0.5 * largest < finite["se"] < 1.1 * largest  # the covariance through categories is positive and small
    assert finite["points_low"] < finite["points"] < finite["points_high"]
    assert found.iloc[1][["estimate", "se", "p", "points_low"]].isna().all()


def test_effects_are_averaged_over_combinations_that_somebody_saw() -> None:
    """Catches .0000 [.0000, .0000] for an explanation that was never shown apart from the other."""
    frame = participants_of("none", "examples")
    model = analyze_as_in_the_paper(frame).largest
    effects = average_effects(frame, model, ["saliency", "examples"], by="trial_type")
    effects = effects.set_index(["variable", "trial_type"])
    assert effects.loc["saliency", ["effect", "se", "low", "high"]].isna().all(axis=None)
    found = contrasts.table(model, contrasts.list_default(frame))
    np.testing.assert_allclose(100 * effects.loc["examples", "effect"].astype(float), found["points"], atol=1e-9)
    together = participants_of("none", "both")
    blank = average_effects(together, analyze_as_in_the_paper(together).largest, ["saliency", "examples"])
    assert blank[["effect", "se"]].isna().all(axis=None)


def test_planned_contrasts_without_responses_are_left_out_and_named(tmp_path: Path) -> None:
    """Catches a plan's "Saliency maps vs no explanation" of people who saw both, and a file that dies of a placebo."""
    frame = participants_of("none", "both")
    done = results.write(responses.prepare(frame), tmp_path / "default", plan=AnalysisPlan())
    assert list(done.contrasts["contrast"]) == [f"both - none, {kind}" for kind in TYPES]
    # Holm's method by its definition, over the three that are tested.
    p = np.sort(done.contrasts["p"])
    assert np.sort(done.contrasts["p_holm"])[0] == pytest.approx(min(1, 3 * p[0]))
    said = "6 planned contrasts are not tested, because nobody responded with: saliency maps, examples."
    assert said in done.sentences
    assert said in (tmp_path / "default" / "report.md").read_text()
    own = (PlannedContrast(more="saliency", less="random_maps"), PlannedContrast(more="both"))
    done = results.write(responses.prepare(frame), tmp_path / "own", plan=AnalysisPlan(contrasts=own))
    assert list(done.contrasts["contrast"]) == ["both - none"]
    nothing = AnalysisPlan(contrasts=own[:1])
    done = results.write(responses.prepare(frame), tmp_path / "nothing", plan=nothing)
    assert done.contrasts.empty


def test_equal_columns_share_a_coefficient_and_say_so() -> None:
    """Catches Table 1's row "saliency" for the effect of both explanations, without a word."""
    model = mixed.fit(participants_of("none", "both"), f"correct ~ trial_type + saliency * examples + {RANDOM}")
    assert "share one coefficient: saliency = examples = saliency × examples." in model.messages[0]


def test_a_level_without_rows_takes_no_other_levels_name(tmp_path: Path) -> None:
    """Catches "AI wrong (adversarial)" for trials where the AI is right, in a file without adversarial trials."""
    frame = study(48, 8, 5, seed=7)
    data = responses.prepare(frame[frame["trial_type"] != "adv_incorrect"])
    done = results.write(data, tmp_path)
    assert not [line for line in done.sentences if "adversarial" in line]
    assert "adversarial" not in (tmp_path / "table1.csv").read_text()
    assert "Reference: AI wrong (standard), no saliency map" in (tmp_path / "report.html").read_text()
    place, means, _ = fit_cell_means(data.frame)
    names = [f"{c} - none, {k}" for k in TYPES[1:] for c in ("saliency", "examples", "both")]
    assert list(done.contrasts["contrast"]) == names
    largest = analyze_as_in_the_paper(data).largest  # the random effects of the slow fit
    found = contrasts.table(largest, contrasts.list_default(data.frame)).set_index("contrast")
    for kind in TYPES[1:]:
        expected = means[place["both", kind]] - means[place["none", kind]]
        assert found.loc[f"both - none, {kind}", "estimate"] == pytest.approx(expected, abs=2e-3)
    averaged = contrasts.table(largest, [Contrast("both", "none")]).iloc[0]
    both = [found.loc[f"both - none, {kind}", "estimate"] for kind in TYPES[1:]]
    assert averaged["estimate"] == pytest.approx(np.mean(both))


def test_a_factor_loses_its_unused_levels_in_any_model() -> None:
    """Catches the same in a model of one's own, whose factor kept a level of rows that were left out."""
    frame = study(24, 8, 5, seed=7)
    full = frame.assign(trial_type=pd.Categorical(frame["trial_type"], categories=["other", *TYPES]))
    kept = full[full["trial_type"] != "adv_incorrect"]
    model = mixed.fit(kept, f"correct ~ trial_type + {RANDOM}")
    assert [c.term for c in model.coefficients] == ["(Intercept)", "trial_typestd_correct"]
    assert model.dropped == ()
    other = pd.DataFrame({"trial_type": ["std_correct", "std_incorrect"]})
    np.testing.assert_array_equal(model.design(other), [[1, 1], [1, 0]])
    with pytest.raises(ForetellError, match="fitted without trial_type = 'adv_incorrect'"):
        model.design(full.head(1))
