"""What is measured of each trial and may be a predictor of planned models, next to the factors of the design."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.errors import ForetellError
from study.bundle import Trial
from study.facts import Number


@dataclass(frozen=True)
class Covariate:
    """A number that belongs to a trial, whoever responds to it.

    Attributes
    ----------
    meaning
        What it is, in words.
    read
        Its value as frozen with the study; None where it was not measured.
    """

    meaning: str
    read: Callable[[Trial], Number | None]


TRIAL_COVARIATES: Mapping[str, Covariate] = {
    "p_learner": Covariate("the learner's probability of the AI's prediction", lambda one: one.teaching.p_learner),
    "gain": Covariate("effect of the examples on the learner (log-odds)", lambda one: one.teaching.gain),
    "insertion": Covariate("insertion area of the saliency map", lambda one: one.saliency.insertion),
    "deletion": Covariate("deletion area of the saliency map", lambda one: one.saliency.deletion),
    "relevance": Covariate("share of the evidence on the object (per pixel)", lambda one: one.relevance),
    "effective_samples": Covariate("effective samples of the saliency map", lambda one: one.saliency.effective_samples),
    "ai_probability": Covariate("the AI's confidence", lambda one: one.ai_probability),
    "unit_gap": Covariate(
        "difference in the unit's activation between the images shown (SDs)",
        lambda one: None if one.unit is None else one.unit.gap,
    ),
    "difficulty": Covariate(
        "difficulty among trials of its type, a normal score",
        lambda one: None if one.difficulty is None else one.difficulty.score,
    ),
}
"""By the names of their columns in exported responses. A faithful saliency map has a large insertion area and a small
deletion area."""
POSITION = "position"
"""The covariate of a response: its place in the participant's order of trials, in the column ``trial``."""
SITTING = "sitting"
"""The covariate of a response: the sitting in which it was given, of a study with several."""
OF_RESPONSES = (POSITION, SITTING)
"""Covariates that differ between the responses to a trial."""
COVARIATES: Mapping[str, str] = {
    **{name: one.meaning for name, one in TRIAL_COVARIATES.items()},
    POSITION: "position of the trial in the participant's order",
    SITTING: "sitting in which the trial was shown",
}
"""Every covariate that a plan may name, with its meaning."""


def check_trials(names: Sequence[str], trials: Sequence[Trial]) -> None:
    """Refuse to freeze a study whose planned models name what its trials do not have.

    Raises
    ------
    ForetellError
        A covariate was not measured on every trial, or is the same on all of them.
    """
    for name in names:
        if name in OF_RESPONSES:
            continue
        values = [TRIAL_COVARIATES[name].read(trial) for trial in trials]
        if (absent := values.count(None)) or len(set(values)) < 2:
            why = f"{absent} of {len(trials)} trials have none" if absent else f"all {len(trials)} trials have the same"
            raise ForetellError(
                f"analysis.models: a model names {name} ({COVARIATES[name]}), but {why}. Leave it out of the models."
            )
