"""The highest maximum of the likelihood, not the nearest one, where responses are few."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from study.analysis.models import mixed, starts
from tests.study.analysis.simulated import study

SETS = {
    "wrong sign": ("0010001000", [1.3, 0.5, 0.8, 0.6, 0.6, 2.0, 0.9, 2.3, 0.3, 0.5], "1022202021"),
    "no variance": ("1000111101", [-0.6, 0.4, 1.6, 1.1, 0.9, -0.7, 0.0, 0.2, 0.8, -0.7], "2012122222"),
    "three maxima": ("0010001010", [0.8, 0.4, 0.5, -0.4, 0.8, -1.0, -1.2, -2.3, -0.5, -0.7], "1010001010"),
}
"""Ten responses each, whose single search from the usual start ends in a lower maximum."""


def ten(name: str) -> pd.DataFrame:
    y, x, ids = SETS[name]
    return pd.DataFrame({"y": [int(c) for c in y], "x": x, "id": [f"p{c}" for c in ids]})


def likelihood(frame: pd.DataFrame, b0: np.ndarray, b1: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Laplace's log-likelihood of random intercepts at each of K points: the mode by bisection, one id at a time."""
    total = np.zeros(len(sd))
    for _, rows in frame.groupby("id"):
        y, x = rows["y"].to_numpy(), rows["x"].to_numpy(float)
        fixed = b0[:, None] + b1[:, None] * x
        low, high = -sd * len(y), sd * len(y)
        for _ in range(90):
            u = (low + high) / 2
            slope = sd * (y - expit(fixed + (sd * u)[:, None])).sum(axis=1) - u
            low, high = np.where(slope > 0, u, low), np.where(slope > 0, high, u)
        eta = fixed + (sd * u)[:, None]
        p = expit(eta)
        total += (y * eta - np.logaddexp(0, eta)).sum(axis=1) - u**2 / 2
        total -= np.log1p(sd**2 * (p * (1 - p)).sum(axis=1)) / 2
    return total


def highest(frame: pd.DataFrame) -> tuple[np.ndarray, float]:
    """(b0, b1, sd) and log-likelihood of the maximum: a dense grid, then the simplex from its best points."""
    sd, b0, b1 = np.meshgrid(np.geomspace(0.05, 1000, 24), np.linspace(-2.4, 2.4, 17), np.linspace(-2.4, 2.4, 17))
    scale = np.sqrt(1 + sd**2 / 3)
    grid = np.stack([(b0 * scale).ravel(), (b1 * scale).ravel(), sd.ravel()])
    values = likelihood(frame, *grid)

    def loss(at: np.ndarray) -> float:
        return -float(likelihood(frame, *(np.array([v]) for v in (at[0], at[1], abs(at[2]))))[0])

    found = [
        minimize(loss, grid[:, k], method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-9, "maxiter": 4000})
        for k in np.argsort(values)[-3:]
    ]
    best = min(found, key=lambda one: one.fun)
    return best.x, -best.fun


@pytest.mark.parametrize("name", SETS)
def test_the_highest_maximum_is_reported(name: str) -> None:
    """A search from one start ended up to 2.3 below the maximum, once with the wrong sign of x."""
    frame = ten(name)
    at, value = highest(frame)
    model = mixed.fit(frame, "y ~ x + (1|id)")
    estimates = {c.term: c.estimate for c in model.coefficients}
    assert model.loglik == pytest.approx(value, abs=1e-3)
    assert estimates["x"] == pytest.approx(at[1], rel=0.05)
    (said,) = [m for m in model.messages if "more than one maximum" in m]
    assert f"{value:.3f}" in said


def test_a_stop_of_a_search_on_its_way_up_is_no_maximum() -> None:
    """The likelihood of these eight rises without end from a standard deviation of 4; a search stopped at 119 for good.

    The message gave the log-likelihood of that stop as the one reported, next to the estimates of another.
    """
    frame = pd.DataFrame(
        {
            "y": [0, 1, 1, 1, 1, 1, 0, 0],
            "x": [
                -0.06271425885369812,
                0.2491574809406205,
                0.04958468028771155,
                1.182665742342288,
                1.4049343623371935,
                0.005121767282302068,
                -0.2744858167755935,
                0.45090785195024213,
            ],
            "id": ["p0", "p1", "p2", "p3"] * 2,
        }
    )
    model = mixed.fit(frame, "y ~ x + (1|id)")
    at = [np.array([c.estimate]) for c in model.coefficients] + [np.array([model.random[0].sd])]
    assert model.loglik == pytest.approx(float(likelihood(frame, *at)[0]), abs=1e-6)
    assert not [m for m in model.messages if "more than one maximum" in m]


def test_the_highest_maximum_of_a_linear_model_is_reported() -> None:
    """A single search ended without random effects, 0.2 below. Oracle: the exact likelihood on a grid."""
    frame = pd.DataFrame(
        {
            "x": [0.9, -0.2, 1.9, -1.0, 0.3, -0.1, -0.3, 0.2],
            "y": [3.2, -0.2, 3.3, 0.8, 0.8, 0.0, -1.3, 0.4],
            "id": list("ababbdeb"),
        }
    )
    design = np.column_stack([np.ones(8), frame["x"]])
    same = np.equal.outer(np.array(list(frame["id"])), np.array(list(frame["id"]))).astype(float)
    values = []
    for ratio in [0.0, *np.geomspace(0.01, 100, 4000)]:
        inverse = np.linalg.inv(covariance := np.eye(8) + ratio**2 * same)
        left = frame["y"] - design @ np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ frame["y"])
        values.append(-4 * np.log(2 * np.pi * (left @ inverse @ left) / 8) - 4 - np.linalg.slogdet(covariance)[1] / 2)
    model = mixed.fit(frame, "y ~ x + (1|id)", family="gaussian")
    assert model.loglik == pytest.approx(max(values), abs=1e-5)
    (said,) = [m for m in model.messages if "more than one maximum" in m]
    assert f"is {max(values):.3f} at the one reported" in said
    assert f"{values[0]:.3f} at another (0.00)" in said
    in_ms = mixed.fit(frame.assign(y=10_000 * frame["y"]), "y ~ x + (1|id)", family="gaussian")
    assert in_ms.random[0].sd == pytest.approx(10_000 * model.random[0].sd, rel=1e-4)


def test_uncorrelated_slopes_are_searched_from_several_points_too() -> None:
    """A larger model fitted worse than the smaller one within it: its search stayed in a lower maximum."""
    frame = ten("wrong sign")
    larger, smaller = (mixed.fit(frame, f"y ~ x + ({term}|id)") for term in ("x|", "1"))
    assert larger.loglik > smaller.loglik - 1e-3


def test_one_maximum_raises_no_warning() -> None:
    """Ends of failed searches (log-likelihoods of -1e7) were called maxima."""
    formula = "correct ~ trial_type * saliency + (1|participant) + (1|category)"
    for seed in (0, 2):
        frame = study(8, 8, 8, seed=seed, sd=0.8)
        assert len(frame) <= starts.FEW
        assert not any("more than one maximum" in m for m in mixed.fit(frame, formula).messages)


def test_many_responses_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study of the usual size would take twelve searches where one is enough."""
    monkeypatch.setattr(starts, "search", lambda *_: pytest.fail("searched again"))
    assert mixed.fit(study(24, 8, 6, seed=1), "correct ~ saliency + (1|participant)").converged
