"""The Bayesian fits of a study, which its analyses share, and the differences between conditions that they give."""

from __future__ import annotations

import threading
import weakref
from typing import ClassVar

import pandas as pd

from core.errors import ForetellError
from study.analysis.bayes import contrasts, posterior
from study.analysis.bayes.posterior import Posterior
from study.analysis.bayes.priors import Priors
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.exploratory.analysis import AnalysedStudy
from study.analysis.models import formula as formulas
from study.analysis.models import random_effects
from study.analysis.planned import placebos
from study.analysis.planned.analysis import list_contrasts
from study.analysis.planned.contrasts import FACTORS, NO_CONTRAST, Cells, Contrast, select_testable
from study.plan.equivalence import Bounds


class _LastFits:
    """The last fits by formula, which the analyses of the same models share."""

    lock = threading.Lock()
    models: weakref.ref[object] | None = None
    asked: tuple[Priors, SamplerSettings] | None = None
    fits: ClassVar[dict[str, Posterior]] = {}


def fit(study: AnalysedStudy) -> Posterior:
    """Fit the largest model with all random effects that were asked for: priors keep those near 0 proper.

    Raises
    ------
    ForetellError
        NumPyro is not installed.
    """
    return _fit_once(study, study.frame, write_formula(study))


def fit_conditions(study: AnalysedStudy) -> Posterior:
    """Fit trial type by condition to the responses in all conditions, as of `study.analysis.planned.placebos.fit`.

    Raises
    ------
    ForetellError
        NumPyro is not installed.
    """
    random = random_effects.by_condition(study.fitted_models.requested_random)
    return _fit_once(study, placebos.code_conditions(study.data)[0], f"correct ~ {placebos.FIXED} + {random}")


def _fit_once(study: AnalysedStudy, frame: pd.DataFrame, formula: str) -> Posterior:
    models, asked = study.fitted_models, (choose_priors(study), choose_settings(study))
    with _LastFits.lock:
        if _LastFits.models is None or _LastFits.models() is not models or _LastFits.asked != asked:
            _LastFits.models, _LastFits.asked, _LastFits.fits = weakref.ref(models), asked, {}
        if formula not in _LastFits.fits:
            priors, settings = asked
            _LastFits.fits[formula] = posterior.fit(
                frame, formula, priors=priors, settings=settings, progress=study.progress
            )
        return _LastFits.fits[formula]


def write_formula(study: AnalysedStudy) -> str:
    """Write the largest model with the random effects before a singular fit was reduced."""
    models = study.fitted_models
    return f"correct {formulas.extract_fixed_effects(models.largest.formula)} + {models.requested_random}"


def choose_priors(study: AnalysedStudy) -> Priors:
    """Return the plan's priors, and the default for what it does not state."""
    return Priors() if study.plan is None else Priors.of_plan(study.plan.plan)


def choose_settings(study: AnalysedStudy) -> SamplerSettings:
    """Return how the study's posteriors are drawn from.

    Raises
    ------
    ForetellError
        Too few draws.
    """
    return SamplerSettings(draws=study.draws, seed=study.seed)


def find_bounds(study: AnalysedStudy) -> Bounds | None:
    """Return the plan's equivalence bounds."""
    return None if study.plan is None else study.plan.plan.equivalence


def list_wanted(study: AnalysedStudy) -> list[Contrast]:
    """List the planned contrasts that have responses; without a plan, the default ones."""
    data, plan = study.data, study.plan
    asked = placebos.list_all_default_contrasts(data) if plan is None else list_contrasts(plan.plan)
    return select_testable(data.every, asked)


def list_fits(study: AnalysedStudy) -> list[Posterior]:
    """List the fits that the contrasts need: that of the two factors, then that of all conditions."""
    needed = {placebos.is_separate(one): None for one in list_wanted(study)}
    return [fit_conditions(study) if is_separate else fit(study) for is_separate in sorted(needed)]


def tabulate_differences(study: AnalysedStudy) -> pd.DataFrame:
    """Tabulate the contrasts as of `study.analysis.bayes.contrasts.tabulate`; those of a fit that is not to be believed
    are missing.

    Raises
    ------
    ForetellError
        No contrast has responses, or no fit is to be believed.
    """
    wanted = list_wanted(study)
    if not wanted:
        raise ForetellError(NO_CONTRAST)
    fits = list_fits(study)
    if not any(one.diagnostics.is_reliable for one in fits):
        raise ForetellError(fits[0].diagnostics.describe())
    bounds = find_bounds(study)

    def tabulate(made: Posterior, some: list[Contrast], cells: Cells) -> pd.DataFrame:
        if not made.diagnostics.is_reliable:
            return pd.DataFrame({"contrast": [one.name for one in some]})
        return contrasts.tabulate(made, some, bounds, cells)

    return placebos.tabulate_in_order(
        wanted,
        lambda some: tabulate(fit(study), some, FACTORS),
        lambda some: tabulate(fit_conditions(study), some, placebos.code_conditions(study.data)[1]),
    )
