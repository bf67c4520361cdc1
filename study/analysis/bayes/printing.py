"""A Bayesian fit as text for a terminal, and as plain values for JSON."""

from __future__ import annotations

from typing import Any

from study.analysis.bayes.means import PosteriorMeans
from study.analysis.bayes.posterior import Posterior
from study.analysis.means.equivalence import write_bounds
from study.analysis.means.printing import list_rows, write_table
from study.analysis.models.printing import align_columns, write_number
from study.plan.equivalence import Bounds

UNBELIEVABLE = "No differences are given, because the fit is not to be believed."
EXPLANATION = (
    "Estimates are posterior means on the link scale; intervals are equal-tailed and contain the value with a "
    "probability of 95%, given the model and the priors."
)


def write_posterior(posterior: Posterior) -> list[str]:
    """Write parameters, priors, sampler and diagnosis as lines."""
    head = ["parameter", "mean", "median", "95% from", "to", "R-hat", "ESS bulk", "ESS tail"]
    rows = [
        [
            str(row["parameter"]),
            *(write_number(row[name]) for name in ("mean", "median", "low", "high")),
            f"{row['rhat']:.3f}",
            f"{row['ess_bulk']:.0f}",
            f"{row['ess_tail']:.0f}",
        ]
        for row in posterior.table.to_dict("records")
    ]
    said = (EXPLANATION, posterior.describe_priors, posterior.settings.describe(), posterior.diagnostics.describe())
    return [*align_columns([head, *rows]), *said, *posterior.design.messages]


def write_means(made: PosteriorMeans, bounds: Bounds | None = None) -> list[str]:
    """Write means, contrasts and notes as lines."""
    explained = ["P(above 0): posterior probability that the difference is positive."]
    if bounds is not None:
        explained.append(f"P(within): that it is within {write_bounds(bounds)} {made.unit}.")
    return [
        f"Means of {made.request}",
        *write_table(made.means),
        "",
        f"Contrasts of {made.request}",
        *write_table(made.contrasts),
        "",
        *made.notes,
        " ".join(explained),
    ]


def as_dict(posterior: Posterior) -> dict[str, Any]:
    """Return parameters, priors and diagnosis as plain values, ready for JSON."""
    made = posterior.diagnostics
    return {
        "bayes": {
            "parameters": list_rows(posterior.table),
            "priors": posterior.describe_priors,
            "sampler": posterior.settings.describe(),
            "rhat": made.rhat,
            "effective_draws": made.effective,
            "divergences": made.divergences,
            "believable": made.is_reliable,
            "diagnosis": made.describe(),
            "messages": list(posterior.design.messages),
        }
    }
