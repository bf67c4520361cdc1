"""Power of ratings: simulated levels have the truth they were drawn from, and the planned ordinal models are tested."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import binom, norm

from core.errors import ForetellError
from dashboard.power import tables
from dashboard.power.jobs import PowerAnalysis
from study.analysis.planned import nested
from study.analysis.planned.contrasts import FACTORS, Contrast
from study.analysis.power import simulation as power
from study.analysis.power import truths
from study.analysis.responses import reading
from study.analysis.responses.outcome import LEVEL
from study.bundle import TRIAL_TYPES
from study.plan.config import StudyConfig
from study.plan.preregistration import NESTED
from study.tasks import TASKS
from study.tasks.scale import RatingScale, make_even_scale
from tests.study.analysis.test_cognitive import trials
from tests.study.analysis.test_ratings import simulate

RECIPE = Path(__file__).parents[3] / "data" / "studies" / "rating.toml"
SCALE = RatingScale((1, 2, 4), (-1.0, 0.7))
"""Of four levels, the third of which nobody gave."""
WORLD = truths.AdditiveTruth({**truths.TABLE_1, "": (0.3, 0.1, 1.0)}, categories=6, levels=SCALE)


def read_recipe(**changes: Any) -> StudyConfig:
    """Read the study file of ratings with some of its tables replaced."""
    return StudyConfig.model_validate(tomllib.loads(RECIPE.read_text(encoding="utf-8")) | changes)


def test_assumed_mean_levels_are_integrated_over_every_random_effect() -> None:
    """Catches thresholds with the wrong sign, steps of one between levels that are two apart, and left-out slopes.

    Oracle: the probability of each level by SciPy's adaptive quadrature; and a simulated study of 240 participants,
    which draws levels and integrates nothing.
    """
    world = WORLD.with_slopes({"participant": 0.8, "category": 0.5, "item": 0.4})
    table = world.tabulate_means().set_index(["condition", "trial_type"])["mean_level"]
    assert len(table) == 4 * 3
    variance = truths.PARTICIPANT_SD**2 + truths.CATEGORY_SD**2 + 0.8**2 + 0.5**2 + 0.4**2
    eta = 0.3 + 1.0 + 1.01 - 1.71

    def passes(cut: float) -> float:
        return float(quad(lambda b: expit(eta + b - cut) * norm.pdf(b, scale=variance**0.5), -12, 12)[0])

    assert table["saliency", "std_correct"] == pytest.approx(1 + passes(-1.0) + 2 * passes(0.7), abs=1e-6)
    table = WORLD.tabulate_means().set_index(["condition", "trial_type"])["mean_level"]
    frame = replace(WORLD, category_sd=0.0, person_sd=0.0).study(60, np.random.default_rng(3))
    expected = replace(WORLD, category_sd=0.0, person_sd=0.0).tabulate_means()
    assert set(frame["level"]) == {1, 2, 4}
    for _, row in expected.iterrows():
        chosen = frame["trial_type"] == row["trial_type"]
        for name, value in FACTORS[row["condition"]].items():
            chosen &= frame[name] == value
        levels = frame.loc[chosen, "level"]
        assert row["mean_level"] == pytest.approx(levels.mean(), abs=4 * levels.std() / len(levels) ** 0.5)


def test_theories_rate_as_simulated_participants_do() -> None:
    """Oracle: 1,500 participants per condition, drawn and not integrated; within four standard errors."""
    mixture = {"map_reader": 2.0, "bayesian_learner": 1.0}
    world = truths.Theories(mixture, list(trials().values()), task=TASKS["rating"])
    table = world.tabulate_means().set_index(["condition", "trial_type"])["mean_level"]
    frame = world.study(1500, np.random.default_rng(4))
    assert "correct" not in frame
    for condition, factors in FACTORS.items():
        seen = frame[(frame["saliency"] == factors["saliency"]) & (frame["examples"] == factors["examples"])]
        each = seen.groupby(["trial_type", "participant"], observed=True)["level"].mean()
        for kind in TRIAL_TYPES:
            error = each[kind].std() / len(each[kind]) ** 0.5
            assert table[condition, kind] == pytest.approx(each[kind].mean(), abs=4 * error)


def test_power_of_ratings_is_alpha_without_an_effect_and_high_with_one() -> None:
    """Catches logistic models of a level, tests that reject too often, and an effect that ratings do not show.

    The test's own size: within the central 99.9% of the binomial of 12 studies.
    """
    how: dict[str, Any] = {"models": NESTED, "tests": "chi_square", "workers": 1}
    contrast = Contrast("saliency", "none", ("adv_incorrect",))
    table = power.curve(WORLD, [6], studies=12, effects=[0.0, 2.0], contrasts=[contrast], **how)
    assert not table["failed"].any()
    hits = table[table["effect"] == 0.0]["power"] * 12
    assert (hits <= binom.ppf(0.9995, 12, 0.06)).all()
    assert (table[table["effect"] == 2.0].set_index("test")["power"] > 0.8).all()


def test_a_pilot_of_ratings_is_simulated_again() -> None:
    """Catches the even thresholds of simulated participants in a world that a pilot determines.

    Oracle: the mean level of each cell of the pilot, which a model with every cell reproduces.
    """
    uneven = RatingScale((1, 2, 3, 4, 5), (-3.0, -0.4, 0.1, 2.5))
    frame = replace(WORLD, levels=uneven, categories=10).study(20, np.random.default_rng(8))
    data = reading.prepare(frame.assign(task="rating"))
    model = nested.analyze(data, fixed={"interaction": NESTED["interaction"]}).models["interaction"]
    world = truths.from_pilot(model, tuple(FACTORS), 10, 1)
    assert world.levels is not None
    assert world.levels.values == uneven.values
    assert world.levels.thresholds[0] < make_even_scale(5).thresholds[0]
    observed = data.frame.groupby(["condition", "trial_type"], observed=True)["level"].mean()
    for _, row in world.tabulate_means().iterrows():
        assert row["mean_level"] == pytest.approx(observed[row["condition"], row["trial_type"]], abs=0.1)
    with pytest.raises(ForetellError, match="does not determine"):
        truths.from_pilot(nested.analyze(reading.prepare(simulate())).models["interaction"], ("none",), 6, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, r"this study asks for ratings, of which none is right or wrong\. Build the study and assume simulated"),
        ({"other_bounds": (-5.0, 5.0)}, "Equivalence bounds are percentage points of correct responses"),
        ({"pilot": 7}, "The pilot's responses are levels 1 to 5, and this study's are levels 1 to 7"),
    ],
)
def test_a_world_that_is_not_the_studys_is_refused(options: dict[str, Any], said: str) -> None:
    """Catches the paper's accuracies, percentage points and another scale as the truth of ratings."""
    levels = options.get("pilot", 5)
    if "pilot" in options:
        options = {"pilot": reading.prepare(simulate())}
    question = PowerAnalysis(read_recipe(trials={"levels": levels}), (10,), 2, (1.0,), **options)
    with pytest.raises(ForetellError, match=said):
        question.truth()


def test_mean_levels_are_written_with_their_differences() -> None:
    """Catches a level as a percentage."""
    table = WORLD.tabulate_means().assign(effect=1.0)
    without = table[table["condition"] == "none"].set_index("trial_type")["mean_level"]
    table[LEVEL.difference] = table["mean_level"] - table["trial_type"].map(without)
    written = tables.tabulate_assumptions(table).set_index("Condition")["AI right"]
    mean = table.set_index(["condition", "trial_type"])["mean_level"]
    expected = mean["saliency", "std_correct"], mean["saliency", "std_correct"] - mean["none", "std_correct"]
    assert written["No explanation"] == f"{mean['none', 'std_correct']:.2f}"
    assert written["Saliency maps"].replace("\N{MINUS SIGN}", "-") == f"{expected[0]:.2f} ({expected[1]:+.2f})"
