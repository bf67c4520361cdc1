"""Mixed models from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from core.types import Progress, silent
from dashboard.notebook.display import escape
from dashboard.notebook.posteriors import PrintedPosterior
from dashboard.notebook.tables import PrintedTable
from study.analysis.bayes import posterior
from study.analysis.bayes.priors import Priors
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.means import bayes_factors, equivalence
from study.analysis.means import printing as means_printing
from study.analysis.means.adjustment import Adjustment
from study.analysis.means.effects import estimate_effects
from study.analysis.means.means import EstimatedMeans, estimate_means
from study.analysis.means.request import PAIRWISE
from study.analysis.models import coding, mixed, printing
from study.analysis.models import formula as formulas
from study.analysis.models.marginal import Scale, get_link
from study.analysis.models.records import MixedModel
from study.analysis.models.sentences import LEVEL


@dataclass(frozen=True)
class PrintedMeans:
    """Estimated marginal means, which print themselves.

    Attributes
    ----------
    estimated
        The means, contrasts and notes.
    fitted
        The model that they are of.
    asked
        The contrasts.
    adjust
        Their correction.
    """

    estimated: EstimatedMeans
    fitted: FittedModel = field(repr=False)
    asked: Sequence[str] = field(default=(PAIRWISE,), repr=False)
    adjust: Adjustment = field(default="holm", repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """The means: a row for each combination of levels."""
        return self.estimated.means

    @property
    def contrasts(self) -> pd.DataFrame:
        """The contrasts between them."""
        return self.estimated.contrasts

    def equivalence(self, bounds: str | float | Sequence[float], *, alpha: float = LEVEL) -> PrintedTable:
        """Test whether each contrast lies between bounds, by two one-sided tests.

        Parameters
        ----------
        bounds
            5 (from -5 to 5) or (-5, 10): percentage points of a binomial response, averaged over the random effects;
            of others in the response's unit.
        alpha
            Of each test; intervals cover 1 - 2 alpha.

        Raises
        ------
        ForetellError
            Bounds without 0 between them, or no contrasts.
        """
        tests = equivalence.compute_equivalence(
            self.fitted.frame,
            self.fitted.model,
            self.estimated,
            equivalence.read_bounds(bounds),
            contrasts=self.asked,
            adjust=self.adjust,
            alpha=alpha,
        )
        return PrintedTable(tests.table, means_printing.write_equivalence(tests))

    def bayes_factors(self, prior_sd: float) -> PrintedTable:
        """Compute Bayes factors for no difference of each contrast, with a normal prior on the link scale.

        Parameters
        ----------
        prior_sd
            Standard deviation of the prior, the size of effect that is plausible; half and twice it are shown too.

        Raises
        ------
        ForetellError
            No number above 0.
        """
        checked = bayes_factors.check_prior_sd(prior_sd)
        frame, model = self.fitted.frame, self.fitted.model
        made = self.estimated
        if made.scale != "link":
            made = estimate_means(frame, model, str(made.request), contrasts=self.asked, adjust=self.adjust)
        table = bayes_factors.tabulate(made.contrasts, checked)
        return PrintedTable(table, means_printing.write_bayes_factors(table, checked, get_link(model)))

    def __str__(self) -> str:
        return "\n".join(means_printing.write_means(self.estimated))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True)
class FittedModel:
    """A fitted model, which prints itself with its warnings; ``model`` has everything else.

    Attributes
    ----------
    model
        Coefficients, random effects, likelihood and messages.
    frame
        The rows that it was fitted to.
    """

    model: MixedModel
    frame: pd.DataFrame = field(repr=False, compare=False)

    @property
    def coefficients(self) -> pd.DataFrame:
        """The fixed effects: a row for each term."""
        return pd.DataFrame(self.model.as_dict()["coefficients"]).set_index("term")

    @property
    def random(self) -> pd.DataFrame:
        """The random effects: a row for each standard deviation."""
        return pd.DataFrame(self.model.as_dict()["random"])

    def means(
        self,
        asked: str,
        *,
        contrasts: Sequence[str] = (PAIRWISE,),
        adjust: Adjustment = "holm",
        scale: Scale = "link",
        level: float = 0.95,
    ) -> PrintedMeans:
        """Estimate marginal means of factors, and contrasts between them.

        Parameters
        ----------
        asked
            ``"a"``, ``"a * b"`` (each combination) or ``"a | b"`` (a within each level of b).
        contrasts
            ``"pairwise"``, ``"reference"``, ``"b - a"``, or weights ``"b=1, a=-1/2, c=-1/2"``.
        adjust
            "none", "holm", "tukey" or "mvt" (simultaneous max-t).
        scale
            "link" (log-odds), "response" (random effects of 0) or "population" (averaged over the random effects).

        Raises
        ------
        ForetellError
            An unknown factor, level or choice, a continuous predictor, or weights that do not sum to zero.
        """
        made = estimate_means(
            self.frame, self.model, asked, contrasts=contrasts, adjust=adjust, scale=scale, level=level
        )
        return PrintedMeans(made, self, contrasts, adjust)

    def effects(self, asked: str, *, scale: Scale = "population", level: float = 0.95) -> pd.DataFrame:
        """Estimate average marginal effects: of the predictor ``"a"``, or ``"a | b"`` for the rows of each level of b.

        Raises
        ------
        ForetellError
            The text names several predictors, or one that the model does not have.
        """
        return estimate_effects(self.frame, self.model, asked, scale=scale, level=level)

    def bayes(
        self, *, prior_sd: float = 1.0, draws: int = 1000, seed: int = 0, progress: Progress = silent
    ) -> PrintedPosterior:
        """Draw from the posterior of the same binomial or Gaussian model (`requirements-bayes.txt`).

        Parameters
        ----------
        prior_sd
            Standard deviation of the prior of effects, in log-odds; of a Gaussian model in SDs of the response.
        draws
            Of each of the four chains.
        seed
            The same seed on the same machine gives the same draws.
        progress
            ``progress(done, total, what)``; raise from it to stop the fit.

        Raises
        ------
        ForetellError
            No proper prior, too few draws, another family, or NumPyro is not installed.
        """
        model = self.model
        made = posterior.fit(
            self.frame,
            model.formula,
            family=model.family,
            link=model.link,
            weights=model.weights,
            priors=Priors(effect_sd=prior_sd),
            settings=SamplerSettings(draws=draws, seed=seed),
            progress=progress,
        )
        return PrintedPosterior(made, self.frame)

    def __str__(self) -> str:
        return "\n".join(printing.lines(self.model))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def glmm(
    frame: pd.DataFrame,
    formula: str,
    *,
    family: str = "binomial",
    link: str | None = None,
    reference: Mapping[str, str] | None = None,
    weights: str | None = None,
    reml: bool = False,
    agq: int = 1,
) -> FittedModel:
    """Fit a generalised linear mixed model; the formula is lme4's.

    Parameters
    ----------
    frame
        A row for each response. Grouping columns are read as factors.
    family, link
        "binomial" (link "logit" or "probit"), "ordinal" (cumulative logit), "gaussian" or "poisson".
    reference
        Reference levels by column.
    weights
        Column of prior weights.
    reml
        For a gaussian model: restricted maximum likelihood.
    agq
        Quadrature points; 1 is the Laplace approximation.

    Raises
    ------
    ForetellError
        A formula that does not fit the columns, or data without a fit.
    """
    groups = {name: frame[name].astype(str) for name in formulas.groupings(formula) if name in frame}
    coded = coding.with_reference(frame.assign(**groups), dict(reference or {}))
    settings: dict[str, Any] = {"family": family, "link": link, "agq": agq, "reml": reml, "weights": weights}
    return FittedModel(mixed.fit(coded, formula, **settings), coded)
