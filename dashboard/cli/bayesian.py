"""``glmm --bayes`` and ``analyze --bayes``: how a posterior is drawn from, and a mixed model by such draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from core.errors import ForetellError
from dashboard.cli.terminal import Bars

if TYPE_CHECKING:
    import pandas as pd

    from study.analysis.bayes.priors import Priors
    from study.analysis.bayes.sampler import SamplerSettings
    from study.plan.equivalence import Bounds


class SamplingOptions(NamedTuple):
    """The priors and how to draw."""

    priors: Priors
    settings: SamplerSettings


def read_options(
    *, wanted: bool, prior_sd: float | None, draws: int | None, seed: int | None, others: Mapping[str, bool]
) -> SamplingOptions | None:
    """Read the options of a Bayesian fit; None where none is wanted.

    Parameters
    ----------
    others
        Options of fits by maximum likelihood, and whether each was given.

    Raises
    ------
    ForetellError
        An option that the kind of fit does not have, no proper prior, too few draws, or no NumPyro.
    """
    if not wanted:
        refuse_without_bayes({"--draws": draws, "--seed": seed})
        return None
    if wrong := [option for option, is_given in others.items() if is_given]:
        raise ForetellError(
            f"{wrong[0]} does not apply to a Bayesian fit, which is of a binomial (logit or probit) or gaussian model, "
            "with means on the population scale and no correction: leave it out."
        )
    from study.analysis.bayes.priors import Priors

    priors = Priors() if prior_sd is None else Priors(effect_sd=prior_sd)
    return SamplingOptions(priors, read_settings(draws, seed))


def refuse_without_bayes(options: Mapping[str, object]) -> None:
    """Refuse options of Bayesian fits that were given (are not None) although no such fit is wanted.

    Raises
    ------
    ForetellError
        With the option and the remedy.
    """
    for option, given in options.items():
        if given is not None:
            raise ForetellError(f"{option} is an option of Bayesian fits: add --bayes, or leave it out.")


def read_settings(draws: int | None, seed: int | None) -> SamplerSettings:
    """Read how the posterior is drawn from; what was not given (None) is the default.

    Raises
    ------
    ForetellError
        Too few draws, or no NumPyro.
    """
    from study.analysis.bayes import sampler

    given = {"draws": draws, "seed": seed}
    settings = sampler.SamplerSettings(**{name: value for name, value in given.items() if value is not None})
    sampler.import_numpyro()
    return settings


def estimate(
    frame: pd.DataFrame,
    rows: Mapping[str, str | None],
    means: Sequence[str],
    contrasts: Sequence[str],
    bounds: Bounds | None,
    sampling: SamplingOptions,
) -> tuple[list[str], dict[str, Any]]:
    """Fit the model and estimate the means that are asked for, as lines and as values for JSON.

    Parameters
    ----------
    rows
        formula, family, link and weights.
    """
    from study.analysis.bayes import posterior, printing
    from study.analysis.bayes.means import estimate_means
    from study.analysis.means.printing import list_rows

    with Bars() as progress:
        given: dict[str, Any] = {**rows, "priors": sampling.priors, "settings": sampling.settings}
        made = posterior.fit(frame, progress=progress, **given)
    lines, values = printing.write_posterior(made), printing.as_dict(made)
    if not made.diagnostics.is_reliable:
        return [*lines, *([printing.UNBELIEVABLE] if means else [])], values
    values["means"] = []
    for asked in means:
        table = estimate_means(frame, made, asked, contrasts=contrasts, bounds=bounds)
        lines += ["", *printing.write_means(table, bounds)]
        tables = {"of": str(table.request), "means": list_rows(table.means), "contrasts": list_rows(table.contrasts)}
        values["means"].append(tables)
    return lines, values
