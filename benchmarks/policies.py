"""Teaching policies on the scenes: how well each set teaches the learner, and influence against leaving images out.

``python -m benchmarks.policies``. The policies choose examples for the trials of the demo study, from the same pool.
The learner and the simulated participant who learns as it does (`BayesianLearner`) see each set. For the second part
the last layer is trained on the example pool, and again without each of some images: what that changes in the logit of
a trial's prediction is compared with its influence, by the exact Hessian and by the Kronecker factors. Errors are
standard errors over trials.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit, softmax
from scipy.stats import spearmanr
from tqdm import tqdm

from benchmarks.machine import arguments, hand_over
from core.teaching.kfac import fit_prior
from core.teaching.policies import POLICIES
from core.teaching.policies.influence import compute_influence
from core.types import silent
from study.building.plan import Planner, TeachingProblem, TrialPlan, make_planner
from study.network.sources import open_sources
from study.plan.simulated_participants import BayesianLearner

DEMO = Path(__file__).parents[1] / "data" / "studies" / "demo.toml"
RIDGE = 1.0
"""Precision of the isotropic part with which the last layer is trained."""
Array = NDArray[np.float64]


def measure(left_out: int) -> dict[str, Any]:
    """Measure both tables, JSON-ready."""
    with tempfile.TemporaryDirectory() as scratch:
        planner = make_planner(open_sources(DEMO), Path(scratch))
        plan = planner.plan(silent)
        return {"trials": len(plan.trials), "policies": _teach(planner, plan), **_retrain(planner, plan, left_out)}


def _teach(planner: Planner, plan: TrialPlan) -> dict[str, Any]:
    """Let every policy choose for every trial; `first` where it finds a set."""
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in POLICIES}
    for trial in tqdm(plan.trials, unit="trial"):
        question = _question(planner, trial.candidate)
        base = logit(1 - BayesianLearner().lapse)
        believed = base if trial.candidate.truth == trial.candidate.target else -base
        for name in POLICIES:
            chosen = planner.search(question, planner.config.teaching.model_copy(update={"policy": name})).chosen
            if chosen is not None:
                more = expit(believed + chosen.gain) - expit(believed)
                rows[name].append(
                    {"probability": chosen.p_learner, "gain": chosen.gain, "rank": chosen.rank, "more_correct": more}
                )
    return {name: {"trials": len(entries)} | _over_trials(entries) for name, entries in rows.items() if entries}


def _question(planner: Planner, candidate: Any) -> TeachingProblem:
    question = planner.question(candidate)
    if isinstance(question, str):
        raise ValueError(question)
    return question


def _over_trials(rows: list[dict[str, float]]) -> dict[str, Any]:
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {
        name: {"mean": round(float(v.mean()), 4), "error": round(float(v.std(ddof=1) / len(v) ** 0.5), 4)}
        for name, v in columns.items()
    }


def _retrain(planner: Planner, plan: TrialPlan, left_out: int) -> dict[str, Any]:
    """Compute, for each trial, the rank correlation of influence with retraining, over the images left out."""
    pool = planner.material.pool
    features, labels = pool.features.double(), torch.from_numpy(pool.truth)
    layer = LastLayer(features.numpy(), pool.truth, np.asarray(planner.prior.head))
    whole = layer.train(np.ones(len(features)), layer.begin)
    chosen = np.random.default_rng(0).choice(len(features), left_out, replace=False)
    asked = [(_question(planner, one.candidate).image.double(), one.candidate.target) for one in plan.trials]
    x = np.stack([np.append(image.numpy(), 1.0) for image, _ in asked])
    targets = [target for _, target in asked]
    changes = []
    for i in tqdm(chosen, unit="image"):
        weights = np.ones(len(features))
        weights[i] = 0.0
        changes.append(((whole - layer.train(weights, whole))[targets] * x).sum(1))
    prior = fit_prior(torch.from_numpy(whole), [features])
    exact = layer.influence(whole, x, targets)
    errors: dict[str, list[dict[str, float]]] = {"exact": [], "kfac": []}
    for k, (image, target) in enumerate(asked):
        truth = [change[k] for change in changes]
        kfac = compute_influence(prior, features[chosen], labels[chosen], image, target)
        for name, one in (("exact", exact[k][chosen]), ("kfac", kfac.numpy())):
            errors[name].append({"rank_correlation": float(spearmanr(one, truth).statistic)})
    return {"left_out": left_out, "retraining": {name: _over_trials(rows) for name, rows in errors.items()}}


class LastLayer:
    """Softmax regression of the pool with a ridge, by Newton steps on its exact Hessian."""

    def __init__(self, features: Array, labels: NDArray[np.int64], begin: Array) -> None:
        self.z = np.hstack([features, np.ones((len(features), 1))])
        self.hot = np.eye(len(begin))[labels]
        self.begin = begin

    def train(self, weights: Array, begin: Array) -> Array:
        """Return the layer (K, M + 1) that minimises the weighted loss."""
        w = begin
        for _ in range(100):
            p = softmax(self.z @ w.T, axis=1)
            slope = (weights[:, None] * (p - self.hot)).T @ self.z + RIDGE * w
            if np.abs(slope).max() < 1e-8:
                return w
            step = cho_solve(cho_factor(self.curvature(p, weights)), slope.ravel()).reshape(w.shape)
            size, value = 1.0, self._loss(w, weights)
            while self._loss(w - size * step, weights) > value + 1e-12 * abs(value):
                size /= 2
            w = w - size * step
        raise ValueError("The last layer did not converge.")

    def _loss(self, w: Array, weights: Array) -> float:
        logits = self.z @ w.T
        likelihood = (logits * self.hot).sum(1) - np.logaddexp.reduce(logits, axis=1)
        return float(-weights @ likelihood + RIDGE / 2 * (w * w).sum())

    def curvature(self, p: Array, weights: Array) -> Array:
        """Return the exact Hessian (K (M + 1), K (M + 1)), block by block."""
        classes, width = self.begin.shape
        blocks = np.empty((classes, width, classes, width))
        for a in range(classes):
            for b in range(classes):
                share = weights * p[:, a] * ((a == b) - p[:, b])
                blocks[a, :, b] = (self.z * share[:, None]).T @ self.z
        return blocks.reshape(classes * width, -1) + RIDGE * np.eye(classes * width)

    def influence(self, w: Array, x: Array, targets: list[int]) -> Array:
        """Compute -grad f(x)^T H^-1 grad L(z) by the exact Hessian, (T, N)."""
        p = softmax(self.z @ w.T, axis=1)
        gradients = ((p - self.hot)[:, :, None] * self.z[:, None, :]).reshape(len(p), -1)
        of_logits = np.zeros((len(x), *w.shape))
        of_logits[np.arange(len(x)), targets] = x
        solved = cho_solve(cho_factor(self.curvature(p, np.ones(len(p)))), of_logits.reshape(len(x), -1).T)
        influences: Array = -(gradients @ solved).T
        return influences


def main() -> None:
    parser = arguments("policies")
    parser.add_argument("--left-out", type=int, default=40, help="images without which the last layer is trained")
    given = parser.parse_args()
    hand_over("policies", given, lambda: measure(given.left_out))


if __name__ == "__main__":
    main()
