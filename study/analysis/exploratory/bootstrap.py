"""The planned tests by parametric bootstrap: likelihood ratios of studies drawn from the smaller of two models.

Davison & Hinkley (1997), Bootstrap Methods and their Application, section 4.2. It needs neither the F nor the
chi-square distribution, which hold for many participants, categories and images only. p is the share of drawn studies
whose ratio is at least that of the responses, which count among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from scipy.stats import beta

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, has_models
from study.analysis.means.adjustment import holm
from study.analysis.models.draws import Draws
from study.analysis.models.records import Floats
from study.analysis.models.refits import Refits
from study.analysis.models.sentences import alpha_text, describe_p
from study.analysis.planned.nested import RatioTest
from study.analysis.words.wording import write_contrast

STUDIES = 199
"""Drawn studies of a test: p of .05 is then known to within .03."""
REFIT_S, REFIT_ROW_S = 0.01, 4e-5
"""Processor time of one refit of a model, and what each response adds."""
COLUMNS = ("result", "chisq", "chisq_df", "p", "p_bootstrap", "p_bootstrap_low", "p_bootstrap_high", "studies")


def measure(study: AnalysedStudy, studies: int) -> pd.DataFrame:
    """Tabulate of each test its ratio, its p as reported, and p by bootstrap with its 95% Monte Carlo interval.

    Both p are corrected for the number of tests where the reported ones are. `studies`: those whose fits succeeded.

    Raises
    ------
    ForetellError
        Nothing can be drawn from the smaller model, or the models cannot be fitted again.
    """
    tests = [test for test in study.fitted_models.tests if test.p is not None]
    if not tests:
        raise ForetellError("No test of the models can be computed, so there is none to repeat by bootstrap.")
    refits = {
        name: Refits(study.frame, model)
        for name, model in study.fitted_models.models.items()
        if any(name in (test.smaller, test.larger) for test in tests)
    }
    rows = [_bootstrap(study, refits, tests, k, studies) for k in range(len(tests))]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    if any(test.p_holm is not None for test in tests):
        names = ["p_bootstrap", "p_bootstrap_low", "p_bootstrap_high"]
        order = table["p_bootstrap"].to_numpy(dtype=np.float64)
        factor = holm(order) / order
        table[names] = (table[names].mul(factor, axis=0)).clip(upper=1.0)
    return table


def _bootstrap(
    study: AnalysedStudy, refits: Mapping[str, Refits], tests: list[RatioTest], k: int, studies: int
) -> tuple[object, ...]:
    test, total = tests[k], len(tests) * studies
    ratios = []
    for done, ratio in enumerate(_draw_ratios(study, refits, test, studies)):
        study.progress(k * studies + done, total, f"Drawing studies for the test of {write_contrast(test.name)}")
        ratios.append(ratio)
    made = np.array([ratio for ratio in ratios if np.isfinite(ratio)])
    if len(made) < studies / 2:
        raise ForetellError(
            f"Most studies drawn for the test of {write_contrast(test.name)} could not be fitted: take fewer random "
            "slopes or more responses."
        )
    beyond = int(np.sum(made >= test.chisq - 1e-9))
    p = (beyond + 1) / (len(made) + 1)
    low = float(beta.ppf(0.025, beyond, len(made) - beyond + 1)) if beyond else 0.0
    high = float(beta.ppf(0.975, beyond + 1, len(made) - beyond)) if beyond < len(made) else 1.0
    return test.name, test.chisq, test.df, test.decisive_p, p, min(low, p), max(high, p), len(made)


def _draw_ratios(study: AnalysedStudy, refits: Mapping[str, Refits], test: RatioTest, studies: int) -> Iterator[float]:
    """Yield the likelihood ratio of each drawn study; NaN where a model could not be fitted to it."""
    draws = Draws.of(study.frame, study.fitted_models.models[test.smaller])
    rng = np.random.default_rng([study.seed, *test.name.encode()])
    for _ in range(studies):
        yield _compute_ratio(refits[test.smaller], refits[test.larger], draws.sample(rng))


def _compute_ratio(small: Refits, large: Refits, correct: Floats) -> float:
    try:
        return max(0.0, 2 * (large.maximise(correct) - small.maximise(correct)))
    except ForetellError:
        return np.nan


def describe(table: pd.DataFrame, level: float) -> str:
    """Say whether a verdict changes, and where the drawn studies are too few to tell."""
    changed, open_ = [], []
    for row in table.to_dict("records"):
        by_bootstrap = describe_p(row["p_bootstrap"]).removeprefix("p ")
        name = f"{write_contrast(row['result'])} ({describe_p(row['p'])}, by bootstrap {by_bootstrap})"
        if (row["p"] < level) != (row["p_bootstrap"] < level):
            changed.append(name)
        if row["p_bootstrap_low"] < level < row["p_bootstrap_high"]:
            open_.append(write_contrast(row["result"]))
    said = [
        f"By bootstrap, {len(changed)} of {len(table)} verdicts change{'s' if len(changed) == 1 else ''}: "
        f"{'; '.join(changed)}."
        if changed
        else f"By bootstrap, no verdict changes: each p stays on its side of {alpha_text(level)}.",
        f"The drawn studies are too few to tell on which side p lies for {'; '.join(open_)}." if open_ else "",
    ]
    return " ".join(filter(None, said))


def estimate_seconds(study: AnalysedStudy) -> float:
    """Estimate the processor time of `measure`, s."""
    tests = len(study.fitted_models.tests)
    return 2 * tests * STUDIES * (REFIT_S + REFIT_ROW_S * len(study.frame))


ANALYSIS = ExploratoryAnalysis(
    "Tests by bootstrap",
    f"Likelihood-ratio tests of the models. For each, {STUDIES} studies are drawn from the smaller model, with new "
    "participants, categories and images, and both models are fitted to each. p by bootstrap is the share of drawn "
    "studies whose ratio is at least the observed one; its 95% interval is what the number of drawn studies leaves "
    "open. Both p are corrected for the number of tests where the results are.",
    lambda study: (measure(study, STUDIES), None),
    has_models,
    lambda study, table: describe(table, study.level),
    estimate_seconds,
)
