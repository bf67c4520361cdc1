"""Small simulated studies, and a slow Laplace likelihood written from the definition."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit

from study.analysis.planned import nested
from study.analysis.responses.reading import Responses

TYPES = ("adv_incorrect", "std_incorrect", "std_correct")


def study(people: int = 24, categories: int = 8, per_type: int = 6, *, seed: int, sd: float = 0.6) -> pd.DataFrame:
    """Responses of a small 2 x 2 study with effects of trial type, saliency and examples."""
    rng = np.random.default_rng(seed)
    person, category = rng.normal(0, sd, people), rng.normal(0, sd, categories)
    level = {"adv_incorrect": -0.8, "std_incorrect": -0.6, "std_correct": 1.6}
    rows = []
    for i in range(people):
        saliency, examples = i % 2, (i // 2) % 2
        for trial in range(3 * per_type):
            kind, j = TYPES[trial % 3], int(rng.integers(categories))
            eta = level[kind] + 0.7 * saliency - 0.2 * examples + person[i] + category[j]
            rows.append((f"p{i}", f"c{j}", kind, saliency, examples, trial, int(rng.random() < expit(eta))))
    columns = ["participant", "category", "trial_type", "saliency", "examples", "trial", "correct"]
    return pd.DataFrame(rows, columns=columns)


def analyze_as_in_the_paper(frame: pd.DataFrame | Responses) -> nested.NestedAnalysis:
    """The paper's models: random intercepts of participants and categories, and the chi-square distribution."""
    return nested.analyze(frame, fixed=nested.FIXED, tests="chi_square")


def study_with_images(seed: int, people: int = 80, categories: int = 8, sd: float = 0.9) -> pd.DataFrame:
    """Responses to the same 3 images of each category, whose and whose categories' effects of explanations differ."""
    rng = np.random.default_rng(seed)
    images = [(f"c{j}", f"c{j} {kind}", kind) for j in range(categories) for kind in TYPES]
    base, own = rng.normal(0, sd, len(images)), rng.normal(0, sd, (2, len(images)))
    base = base + np.repeat(rng.normal(0, 1.5 * sd, categories), len(TYPES))
    shared = rng.normal(0, sd, (2, categories))
    level = {"adv_incorrect": -0.8, "std_incorrect": -0.6, "std_correct": 1.2}
    rows = []
    for i in range(people):
        shown, by_kind = np.array([i % 2, (i // 2) % 2]), dict(zip(TYPES, rng.normal(0, sd, 3), strict=True))
        for k, (category, item, kind) in enumerate(images):
            effect = float(shown @ (np.array([0.5, -0.2]) + own[:, k] + shared[:, k // 3]))
            right = int(rng.random() < expit(level[kind] + by_kind[kind] + base[k] + effect))
            rows.append((f"p{i}", category, item, kind, *shown, right))
    columns = ["participant", "category", "item", "trial_type", "saliency", "examples", "correct"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(trial_type=pd.Categorical(frame["trial_type"], categories=list(TYPES)))


def slopes(seed: int) -> pd.DataFrame:
    """People whose answers depend on a number, each to a degree of their own; and a response time."""
    rng = np.random.default_rng(seed)
    n, people = 900, 30
    frame = pd.DataFrame(
        {"id": rng.integers(people, size=n), "item": rng.integers(12, size=n), "x": rng.normal(size=n)}
    )
    own = rng.multivariate_normal([0, 0], [[0.8, 0.3], [0.3, 0.5]], size=people)
    eta = 0.3 + own[frame["id"], 0] + (0.5 + own[frame["id"], 1]) * frame["x"]
    frame["y"] = (rng.random(n) < expit(eta)).astype(int)
    frame["time"] = 7 + 0.2 * eta + rng.normal(0, 0.4, n)
    return frame.assign(id="p" + frame["id"].astype(str), item="i" + frame["item"].astype(str))


def laplace(
    beta: np.ndarray, sds: np.ndarray, design: np.ndarray, groups: list[np.ndarray], outcome: np.ndarray
) -> float:
    """log of the integral of the likelihood over the random intercepts, by Laplace's method.

    With spherical u: log L = sum log p(y | X beta + Z S u) - u'u / 2 - log det(I + S Z'WZ S) / 2 at the mode of u
    (Bates et al., 2015, doi:10.18637/jss.v067.i01; Pinheiro & Bates, 1995).
    """
    blocks = [sd * np.eye(group.max() + 1)[group] for sd, group in zip(sds, groups, strict=True)]
    loading = np.hstack(blocks)
    mode = np.zeros(loading.shape[1])
    for _ in range(100):
        p = expit(design @ beta + loading @ mode)
        gradient = loading.T @ (outcome - p) - mode
        hessian = (loading * (p * (1 - p))[:, None]).T @ loading + np.eye(len(mode))
        step = np.linalg.solve(hessian, gradient)
        mode = mode + step
        if np.abs(step).max() < 1e-12:
            break
    eta = design @ beta + loading @ mode
    p = expit(eta)
    hessian = (loading * (p * (1 - p))[:, None]).T @ loading + np.eye(len(mode))
    loglik = float(np.sum(outcome * eta - np.logaddexp(0, eta)))
    return loglik - float(mode @ mode) / 2 - float(np.linalg.slogdet(hessian)[1]) / 2


def slow_fit(
    design: np.ndarray, groups: list[np.ndarray], outcome: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(beta, standard errors, sds, log-likelihood) by direct maximisation over (beta, log sd)."""
    k = design.shape[1]

    def loss(theta: np.ndarray) -> float:
        return -laplace(theta[:k], np.exp(theta[k:]), design, groups, outcome)

    start = np.concatenate([np.zeros(k), np.full(len(groups), -0.5)])
    rough = minimize(loss, start, method="BFGS", options={"gtol": 1e-6})
    best = rough.x
    for _ in range(3):  # Newton on finite differences: to the digit
        gradient, hessian = _differences(loss, best)
        best = best - np.linalg.solve(hessian, gradient)
    covariance = np.linalg.inv(_differences(loss, best)[1])
    return best[:k], np.sqrt(np.diag(covariance))[:k], np.exp(best[k:]), -loss(best)


def _differences(loss, x: np.ndarray, h: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """Central differences of the fourth order for the gradient, of the second for the Hessian."""
    n = len(x)
    e = np.eye(n) * h
    gradient = np.array([(8 * (loss(x + d) - loss(x - d)) - (loss(x + 2 * d) - loss(x - 2 * d))) / (12 * h) for d in e])
    hessian = np.array(
        [[(loss(x + a + b) - loss(x + a - b) - loss(x - a + b) + loss(x - a - b)) / (4 * h * h) for b in e] for a in e]
    )
    return gradient, hessian
