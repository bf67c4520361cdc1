"""The ordinal model of conditions in simulated studies whose truth is known: ``python -m benchmarks.ordinal_studies``.

Agreement on four levels, of participants in four conditions who all see the same images. Participants differ in level
and in the effect of the AI's being wrong, images and categories in level, and categories in the effect of each
condition. Saliency maps raise the log-odds of a higher level where the AI is right and lower them as much where it is
wrong, or do neither. Odds are proportional.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.machine import arguments, hand_over
from benchmarks.recovery import summarise
from core.errors import ForetellError
from study.analysis.exploratory import ordinal
from study.analysis.models import proportional
from study.bundle import TRIAL_TYPES
from study.workspace import parallel

SEED = 88
ALPHA = 0.05
CATEGORIES, PER_CONDITION = 12, 15
CONDITIONS = {"none": (0, 0), "saliency": (1, 0), "examples": (0, 1), "both": (1, 1)}
CUTS = np.array([-1.5, 0.0, 1.5])
PERSON_SD, WRONG_SD, CATEGORY_SD, IMAGE_SD, SLOPE_SD = 0.7, 0.7, 0.5, 0.5, 0.3
EFFECTS = (0.0, 0.6)
"""Of saliency maps, in log-odds."""


def simulate(effect: float, rng: np.random.Generator) -> pd.DataFrame:
    """Simulate a study: one row per response, with `rank` and `value`, the level from 1."""
    people = pd.DataFrame(
        {"participant": range(4 * PER_CONDITION), "level": rng.normal(0, PERSON_SD, 4 * PER_CONDITION)}
    )
    people["condition"] = np.resize(list(CONDITIONS), len(people))
    people["own_wrong"] = rng.normal(0, WRONG_SD, len(people))
    images = pd.MultiIndex.from_product([range(CATEGORIES), TRIAL_TYPES], names=["category", "trial_type"]).to_frame(
        False
    )
    category = rng.normal(0, CATEGORY_SD, CATEGORIES)[images["category"]]
    images = images.assign(item=range(len(images)), base=category + rng.normal(0, IMAGE_SD, len(images)))
    frame = people.merge(images, how="cross")
    slopes = rng.normal(0, SLOPE_SD, (CATEGORIES, len(CONDITIONS)))
    shown, examples = (frame["condition"].map({k: v[j] for k, v in CONDITIONS.items()}) for j in (0, 1))
    wrong = (frame["trial_type"] != "std_correct").astype(int)
    moved = slopes[frame["category"], frame["condition"].map({name: k for k, name in enumerate(CONDITIONS)})]
    eta = (
        frame["level"]
        + frame["base"]
        + moved
        + effect * shown * (1 - 2 * wrong)
        + (frame["own_wrong"] - 1) * wrong
        + 0.5
    )
    rank = 1 + np.searchsorted(CUTS, eta + rng.logistic(size=len(frame)))
    made = frame[["participant", "condition", "category", "item", "trial_type"]].astype(str)
    kinds = pd.Categorical(made["trial_type"], categories=list(TRIAL_TYPES))
    return made.assign(trial_type=kinds, saliency=shown, examples=examples, rank=rank, value=rank.astype(np.float64))


def run(effect: float, stream: tuple[int, int]) -> dict[str, Any]:
    """Return what the model says of one study; nothing where it has no finite estimates."""
    try:
        coded, model = ordinal.fit(simulate(effect, np.random.default_rng(stream)))
    except ForetellError:
        return {}
    table = ordinal.tabulate(coded, model).dropna().set_index(["trials", "condition"])
    made: dict[str, Any] = {"any": bool((table["p_holm"] < ALPHA).any()), "odds": _check_odds(coded, model)}
    for kind in ordinal.KINDS:
        row, true = table.loc[(kind, "saliency")], effect * (1 if kind == ordinal.KINDS[0] else -1)
        covered = math.log(row["low"]) <= true <= math.log(row["high"])
        made[kind] = (math.log(row["odds_ratio"]) - true, covered)
    return made


def _check_odds(coded: pd.DataFrame, model: Any) -> float:
    try:
        return float(proportional.check(coded, model).p < ALPHA)
    except ForetellError:
        return math.nan


def measure(studies: int, workers: int | None) -> dict[str, Any]:
    """Measure bias, coverage and rejections for each effect."""
    parameters, rejected = [], []
    for number, effect in enumerate(EFFECTS):
        streams = [(SEED + number, k) for k in range(studies)]
        every = parallel.each(
            partial(run, effect), streams, workers=workers, what=f"Studies with an effect of {effect}"
        )
        made = [one for one in every if one]
        parameters += [_summarise(kind, effect, np.array([one[kind] for one in made])) for kind in ordinal.KINDS]
        odds = np.array([one["odds"] for one in made])
        rejected.append(
            {
                "effect": effect,
                "studies": len(made),
                "any_contrast": float(np.mean([one["any"] for one in made])),
                "proportional_odds": float(np.nanmean(odds)),
                "checked": int(np.isfinite(odds).sum()),
            }
        )
    return {"studies": studies, "participants": 4 * PER_CONDITION, "parameters": parameters, "rejected": rejected}


def _summarise(kind: str, effect: float, made: np.ndarray) -> dict[str, Any]:
    errors, covered = made.astype(np.float64).T
    true = effect * (1 if kind == ordinal.KINDS[0] else -1)
    return {
        "parameter": f"saliency, {kind}",
        "method": f"effect {effect}",
        "true": true,
        **summarise(errors, covered),
    }


if __name__ == "__main__":
    parser = arguments("ordinal_studies")
    parser.add_argument("--studies", type=int, default=200, help="With each effect.")
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    hand_over("ordinal_studies", given, lambda: measure(given.studies, given.workers))
