"""No false alarm on good fits, no silence on bad ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from study.analysis.models import convergence, mixed
from study.analysis.planned import nested
from study.analysis.responses import reading as responses
from tests.study.analysis.simulated import TYPES, study

FORMULA = "correct ~ trial_type * saliency + (1|participant) + (1|category)"


def factor(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(trial_type=pd.Categorical(frame["trial_type"], categories=list(TYPES)))


@pytest.mark.parametrize("seed", range(8))
def test_good_fits_raise_no_alarm(seed: int) -> None:
    model = mixed.fit(factor(study(60, 12, 10, seed=300 + seed, sd=0.7)), FORMULA)
    assert model.messages == ()


@pytest.mark.real
@pytest.mark.parametrize("name", ["paper_size", "unequal", "zero_variance", "separation"])
def test_the_papers_design_stands_on_its_top(real: Path, name: str) -> None:
    # lme4's default optimiser warns of these fits ("failed to converge"), which are right to the digit.
    data = responses.read(real / "responses" / f"{name}.csv").frame
    for model in nested.analyze(data).models.values():
        assert convergence.gain(data, model) < 1e-6
        assert not any("did not converge" in message for message in model.messages)


@pytest.mark.parametrize("term", ["saliency", "sd"])
def test_a_search_that_stopped_early_is_told(term: str) -> None:
    # Oracle: the log-likelihood is a parabola near its top; half a standard error off costs an eighth of a unit.
    frame = factor(study(40, 12, 10, seed=5, sd=0.8))
    model = mixed.fit(frame, FORMULA)
    if term == "sd":
        effect, block = model.random[0], model.blocks[0]
        off = (effect.sd + effect.se / 2) ** 2
        early = replace(model, blocks=(replace(block, covariance=np.array([[off]])), *model.blocks[1:]))
    else:
        moved = tuple(
            replace(c, estimate=c.estimate + c.se / 2) if c.term == "trial_typestd_correct:saliency" else c
            for c in model.coefficients
        )
        early = replace(model, coefficients=moved)
    assert convergence.gain(frame, model) < 1e-6
    assert convergence.gain(frame, early) > 0.1
    assert "did not converge" in convergence.check_convergence(frame, early)[0]


def test_a_perfect_correlation_is_a_boundary() -> None:
    # Each person's slope is her intercept: the correlation can only be estimated as 1.
    rng = np.random.default_rng(3)
    n = 1200
    frame = pd.DataFrame({"id": rng.integers(30, size=n), "x": rng.normal(size=n)})
    own = rng.normal(0, 1.2, 30)[frame["id"]]
    frame["y"] = (rng.random(n) < 1 / (1 + np.exp(-own * (1 + frame["x"])))).astype(int)
    model = mixed.fit(frame.assign(id="p" + frame["id"].astype(str)), "y ~ x + (x|id)")
    assert model.blocks[0].correlations[0, 1] > 0.99
    assert any("(Intercept) and x between levels of id are estimated as perfectly" in m for m in model.messages)


def test_one_group_is_one_level() -> None:
    """Catches "Only 1 levels"."""
    model = mixed.fit(study(24, 8, 12, seed=3, sd=0.8), "correct ~ saliency + (1|participant)")
    alone = replace(model, blocks=(replace(model.blocks[0], modes=model.blocks[0].modes[:1]),))
    assert convergence._few(alone)[0].startswith("Only 1 level of participant: ")


def test_few_groups_are_told() -> None:
    frame = study(24, 4, 12, seed=3, sd=0.8)
    model = mixed.fit(frame, "correct ~ saliency + (1|participant) + (1|category)")
    assert [m for m in model.messages if m.startswith("Only")] == [
        "Only 4 levels of category: a standard deviation between so few is very imprecise. Report its interval, or "
        "make category a fixed effect."
    ]
