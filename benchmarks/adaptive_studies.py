"""False positives and power where responses choose the trials: ``python -m benchmarks.adaptive_studies``.

Studies of two conditions, with and without an effect of saliency maps, whose trials come from
`study.participation.adapting` as in a study. Participants differ in ability (SD .6), in the slope of difficulty and in
trial types; categories and images differ, and images in what the measure of difficulty does not say. Shares of p < .05,
with 95% intervals for the studies simulated (Clopper & Pearson), of: the planned test of explanations, with the
difficulty of trials in the models, as `study.plan.adaptive` plans it; the same without the difficulty; and Welch's t
for the threshold or ability of participants and for their plain accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import ttest_ind
from statsmodels.stats.proportion import proportion_confint

from benchmarks.machine import arguments, hand_over
from study.adaptive.ability import PastTrial, trace_ability
from study.adaptive.difficulty import measure_difficulty
from study.adaptive.policy import MARK
from study.analysis.exploratory.thresholds import ABILITY, THRESHOLD, estimate_each
from study.analysis.power.outcomes import run_tests
from study.bundle import FORMAT, TRIAL_TYPES, Manifest, Trial, TrialAssets
from study.facts import HeatmapFacts, TeachingFacts
from study.participation.adapting import draw_schedule
from study.participation.allocation import Place
from study.plan.adaptive import Adaptive, add_difficulty
from study.plan.preregistration import DEFAULT
from study.plan.texts import complete_texts
from study.tasks import find_task
from study.workspace import parallel

SEED, ALPHA = 98, 0.05
CONDITIONS = ("none", "saliency")
POLICIES = {
    "staircase": {"policy": "staircase", "trials": 30, "levels": 5},
    "information": {"policy": "information", "trials": 30},
}
WORLDS = {"no effect": 0.0, "effect of 0.5 log-odds": 0.5}
LEVELS = {"adv_incorrect": -0.4, "std_incorrect": 0.3, "std_correct": 1.1}
"""Log-odds of a correct response to a trial of each type."""
CATEGORIES, PER_TYPE = 10, 3
NO_IMAGE = "0" * 64


def make_manifest(adaptive: Adaptive, rng: np.random.Generator) -> Manifest:
    """Make a study of 90 trials without images, whose difficulty is drawn."""
    assets = TrialAssets(target=NO_IMAGE, target_map=NO_IMAGE, examples=())
    trials = [
        Trial(
            id=f"{kind}-{category}-{k}",
            trial_type=kind,
            target=f"category {category}",
            alternative="foil",
            truth=f"category {category}" if kind == "std_correct" else "foil",
            options=(f"category {category}", "foil") if rng.random() < 0.5 else ("foil", f"category {category}"),
            source="",
            assets=assets,
            teaching=TeachingFacts(p_learner=float(rng.random())),
            saliency=HeatmapFacts(),
        )
        for kind, category, k in product(TRIAL_TYPES, range(CATEGORIES), range(PER_TYPE))
    ]
    config = {"adaptive": adaptive.model_dump(mode="json")}
    return Manifest(
        format=FORMAT,
        name="simulated",
        seed=1,
        config=config,
        conditions=CONDITIONS,
        texts=complete_texts("en", {"title": "simulated"}, task=find_task(config)),
        classifier={},
        sets={},
        environment={},
        trials=tuple(measure_difficulty(adaptive, trials)),
        practice=(),
        dropped=(),
        assets={NO_IMAGE: 0},
    )


def run_study(policy: str, effect: float, per_condition: int, stream: tuple[int, ...]) -> dict[str, bool]:
    """Tell for one study which analysis rejects; a test without p rejects nothing."""
    frame = simulate_study(policy, effect, per_condition, np.random.default_rng(stream))
    planned = {name: add_difficulty(model) for name, model in DEFAULT.items()}
    scaled = frame.assign(difficulty=frame["difficulty"] / frame["difficulty"].std())
    each = estimate_each(frame)
    measure = THRESHOLD if policy == "staircase" else ABILITY
    return {
        "planned, with difficulty": _find_first_p(scaled, planned) < ALPHA,
        "models without difficulty": _find_first_p(scaled, dict(DEFAULT)) < ALPHA,
        "threshold or ability (Welch)": _compare(each, measure) < ALPHA,
        "plain accuracy (Welch)": _compare(each, "accuracy") < ALPHA,
    }


def _find_first_p(frame: pd.DataFrame, models: Mapping[str, str]) -> float:
    p = run_tests(frame, models, "corrected")[0][0].p
    return 1.0 if p is None else float(p)


def _compare(each: pd.DataFrame, measure: str) -> float:
    first, second = (each.loc[each["condition"] == name, measure].dropna() for name in CONDITIONS)
    return float(ttest_ind(first, second, equal_var=False).pvalue)


def simulate_study(policy: str, effect: float, per_condition: int, rng: np.random.Generator) -> pd.DataFrame:
    """Simulate the responses of a study, a row each."""
    adaptive = Adaptive.model_validate(POLICIES[policy])
    manifest = make_manifest(adaptive, rng)
    images = dict(zip((trial.id for trial in manifest.trials), rng.normal(0, 0.5, len(manifest.trials)), strict=True))
    categories = dict(zip(sorted({t.category for t in manifest.trials}), rng.normal(0, 0.4, CATEGORIES), strict=True))
    rows: list[dict[str, Any]] = []
    for person, condition in product(range(per_condition), CONDITIONS):
        ability, slope = rng.normal(0, 0.6), rng.normal(1.0, 0.3)
        kinds = dict(zip(TRIAL_TYPES, rng.normal(0, 0.5, len(TRIAL_TYPES)), strict=True))
        schedule = draw_schedule(manifest, adaptive, Place(condition, person % 2, int(rng.integers(2**31))))
        history: list[PastTrial] = []
        while made := schedule.list_next(history):
            trial = made[-1].trial
            score = 0.0 if trial.difficulty is None else trial.difficulty.score
            known = LEVELS[trial.trial_type] + kinds[trial.trial_type] + images[trial.id] + categories[trial.category]
            shown = effect * (condition != CONDITIONS[0])
            right = bool(rng.random() < expit(ability + known + shown - slope * score))
            mark = made[-1].screen[MARK]
            history.append(PastTrial(trial, right))
            rows.append(
                {
                    "participant": f"{condition}-{person}",
                    "category": trial.category,
                    "trial_type": trial.trial_type,
                    "saliency": int(condition == "saliency"),
                    "examples": 0,
                    "correct": int(right),
                    "condition": condition,
                    "item": trial.id,
                    "trial": len(history),
                    "difficulty": score,
                    "difficulty_level": mark["level"],
                    "aimed_level": mark["aimed"],
                    "target_share": adaptive.target,
                }
            )
        traced = trace_ability(adaptive, history)[1:]
        for row, (mean, sd) in zip(rows[-len(history) :], traced, strict=True):
            row |= {"ability": mean, "ability_sd": sd}
    frame = pd.DataFrame(rows).assign(trial_type=lambda made: pd.Categorical(made["trial_type"], TRIAL_TYPES))
    return frame if policy == "staircase" else frame.drop(columns=["difficulty_level", "aimed_level", "target_share"])


def measure(studies: int, per_condition: int, workers: int | None) -> dict[str, Any]:
    """Measure the share of rejections of each analysis, policy and world."""
    rows = []
    for policy, (world, effect) in product(POLICIES, WORLDS.items()):
        work = partial(run_study, policy, effect, per_condition)
        hits = pd.DataFrame(parallel.each(work, [(SEED, k) for k in range(studies)], workers=workers))
        for analysis in hits:
            low, high = proportion_confint(int(hits[analysis].sum()), studies, method="beta")
            shares = {"rejected": float(hits[analysis].mean()), "low": float(low), "high": float(high)}
            known = {"policy": policy, "world": world, "participants": 2 * per_condition, "studies": studies}
            rows.append(known | {"analysis": analysis} | {name: round(value, 4) for name, value in shares.items()})
    return {"rows": rows}


if __name__ == "__main__":
    parser = arguments("adaptive_studies")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--per-condition", type=int, default=20)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    hand_over("adaptive_studies", given, lambda: measure(given.studies, given.per_condition, given.workers))
