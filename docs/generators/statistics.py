"""The page ``docs/statistics.md`` from ``benchmarks/results/coverage.json`` and ``null_studies.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dashboard.power.jobs import TRIAL
from generators.benchmark_tables import tabulate_null_studies
from generators.markdown import format_table
from study.analysis.models import search, starts
from study.analysis.models.random_effects import RULE
from study.plan.preregistration import DEFAULT

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

HEAD = """\
# What the statistics guarantee

<!-- Written by `python docs/generate.py` from benchmarks/results. Do not edit by hand. -->

## Do the intervals cover the truth?

Simulated studies of {trials} trials with {sizes} participants per condition, with known true values. A 95% interval
should contain the true value in 95% of studies. Where an interval is over participants, the true value is that of new
participants on the same trials; where a mixed model is fitted, categories are drawn for each study. Run it with
`python -m benchmarks.coverage`.

### Accuracies

Figure 1 shows the share of correct predictions in each condition and trial type. Responses of one participant are
correlated, so {trials_of_type} responses of one participant carry less information than as many from
different participants. The interval
therefore starts from how much participants differ (the linearised variance of a ratio: Cochran, 1977, *Sampling
Techniques*, 3rd ed.), computes how many independent responses would vary as much, and takes Wilson's interval for that
number, with Student's t in place of the normal distribution because few participants say little about how much they
differ (Franco, Little, Louis & Slud, 2019, [doi:10.1093/jssam/smy019](https://doi.org/10.1093/jssam/smy019)). It stays
within 0 and 1, and has a width where all responses are correct.

Coverage of each cell in {cell_studies:,} simulated studies; the Monte Carlo standard error is at most {cell_error:.1%}.
"""

OTHER = """\
### Other intervals

Coverage over {studies} simulated studies of each size (participants per condition), ± its Monte Carlo standard error
over studies. A figure more than two errors below 95% belongs to intervals that are too short: some of those of signal
detection are.
"""

FEW_STUDIES = 500
ALPHA = 0.05
"""Below so many, an interval of a share of .05 is wider than .04."""
FALSE_POSITIVES = "false positives"

SLOPES = """\
## Random slopes

Participants differ in the effect of the trial type, and categories and images in that of an explanation. A model with
random intercepts only, as in the paper, mistakes that variation for evidence and rejects true null hypotheses too often
(Clark 1973; Barr et al. 2013). The default of a plan, and of responses without one, therefore has these slopes:

```toml
[analysis.models]
{models}
```

`(x | g)` estimates correlations, `(x || g)` sets them to 0; `item` is the image. {rule}

What the responses cannot support is left out, and said: images without a column `item`, where none recurs, or where
each category has one. Explanations that vary within participants get slopes by participant in responses without a plan.

The verdicts on Results and in the report are those of models with slopes. Beneath each is the same test with the
paper's random intercepts. A plan has those where its models name no random effects (`data/studies/folke2021.toml`);
plans frozen before slopes were the default keep theirs, reported as planned beneath the verdict. Verdicts are
corrected for their number by Holm's method; with `tests = "chi_square"`, as in the paper and in those plans, each is
judged alone.

### Degrees of freedom

The error of an effect that comes from ten categories is itself estimated from ten categories. With slopes, twice the
gain in log-likelihood divided by its degrees of freedom is compared with an F distribution, and contrasts and their
intervals with t. The variance of an estimate is split into sampling error and a part of each random term. Each part
has the degrees of freedom of containment (what the term adds to the rank of the fixed effects), their sum those of
Satterthwaite (1946, [doi:10.2307/3002019](https://doi.org/10.2307/3002019)), and several effects together those of
Fai & Cornelius (1996, [doi:10.1080/00949659608811740](https://doi.org/10.1080/00949659608811740)).

Maximum likelihood estimates the variances as if the effects were known, so the error of an F test is too small. Where
m levels of a term have nu degrees of freedom, its spread between levels, sampling error included, is too small by
nu / m, which restricted maximum likelihood (REML; Patterson & Thompson, 1971,
[doi:10.1093/biomet/58.3.545](https://doi.org/10.1093/biomet/58.3.545)) takes account of. F is therefore divided by how
much REML would enlarge the error of the tested effects, on average: by about 1.1 with 40 participants and ten
categories. Contrasts are not changed: with Holm's correction over nine they keep their alpha without it.

Models planned without slopes have chi-square and normal tests, as in the paper. Profile intervals are
chi-square in any case. Interim analyses compare the normal value of the contrast's p with their bound.
"""

LINEAR = """\
### Variance explained

Reports, Results and `glmm` give marginal and conditional R² and the intraclass correlation of logistic and ordinal
models on the logit scale, with π²/3 as the variance of a single response (Nakagawa, Johnson & Schielzeth, 2017,
[doi:10.1098/rsif.2017.0213](https://doi.org/10.1098/rsif.2017.0213)); with random slopes, that of the mean over rows
(Johnson, 2014). They are no test, and they depend on the mix of trial types.

## Estimated means and contrasts

`glmm --means "explanation | trial_type"` estimates marginal means over the reference grid of R's emmeans: each
combination of levels has the same weight, other predictors are at their mean, offsets are 0, and a number with two
values is a factor.

| scale | what a mean is |
|---|---|
| `link` | log-odds of a logistic model; differences are logarithms of odds ratios |
| `response` | the probability (or rate) where every random effect is 0, as in emmeans and marginaleffects |
| `population` | the probability averaged over the random effects, as in the planned contrasts |

| correction | p | intervals |
|---|---|---|
| `none` | uncorrected | uncorrected |
| `holm` (default) | Holm | Bonferroni |
| `tukey` | studentised range, of all pairs | the same |
| `mvt` | distribution of the largest absolute t, single-step | the same |

Contrasts are corrected within each level after the bar. Degrees of freedom are those of planned contrasts (above);
the output names them. In linear mixed models each mean and each contrast has its own by Satterthwaite's method, within
one in 1,000 of emmeans with lmerTest for three data sets (`tests/study/analysis/test_gaussian_means.py`), and for two
with prior weights (`tests/study/analysis/test_gaussian_weights.py`). Different ones within a family count as the fewest
for `mvt`. The distribution of the largest t is integrated on a fixed grid: a p is within 1e-6 for up to four means,
within about 1e-5 for more.

`--effects "saliency | trial_type"` averages the change of a prediction over the rows: each level against the first, or
one unit more of a number. Of an ordinal model it is the change of the mean level. Intervals have the degrees of freedom
of contrasts.

A plan may ask for means: they are in the report and on Results as planned, with the plan's confidence level.

```toml
[analysis.means]
of = ["saliency * examples | trial_type"]
contrasts = ["pairwise"]  # or reference, "b - a", weights such as "b=1, a=-1/2, c=-1/2"
adjust = "mvt"            # holm by default
scale = "population"      # the default; response or link
```

Given the same coefficients and covariance, means, standard errors, intervals and corrected p-values are within 1e-6 of
emmeans 1.8.4, and average effects of marginaleffects 0.14, for seven models (`tests/study/analysis/test_means.py`).

## Evidence for no difference

That no difference was found is no evidence that there is none. Two further results can be planned, or asked for with
`glmm`, in notebooks and on Results; neither has a default:

```toml
[analysis]
equivalence = [-5, 10]  # percentage points; 5 is from -5 to 5
prior_sd = 0.5          # log-odds
```

**Equivalence.** Two one-sided tests of each contrast, in percentage points averaged over the random effects, with the
degrees of freedom of the contrasts (Schuirmann, 1987, [doi:10.1007/BF01068419](https://doi.org/10.1007/BF01068419);
Lakens, 2017, [doi:10.1177/1948550617697177](https://doi.org/10.1177/1948550617697177)). Both are significant at .05
where the 90% interval lies between the bounds, which is also how a region of practical equivalence is read. With the
test of difference there are four conclusions:

| | equivalent | not shown to be |
|---|---|---|
| **no evidence of a difference** | equivalent | undecided |
| **different** | different and equivalent | different |

Planned tests are corrected by Holm's method for the number of contrasts and their intervals are not, as those of the
contrasts; of estimated means the intervals are Bonferroni's. p is within 1e-6 of emmeans 1.8.4
(`tests/study/analysis/test_equivalence.py`).

**Bayes factors.** BF₀₁ is how many times more likely the estimate is if there is no difference than if the difference
in log-odds is drawn from a normal distribution with mean 0 and SD `prior_sd` (Dienes, 2014,
[doi:10.3389/fpsyg.2014.00781](https://doi.org/10.3389/fpsyg.2014.00781)), for half, once and twice that SD. It is an
approximation, by a normal likelihood around the estimate: degrees of freedom are ignored and variances taken as known.

`power --contrasts` adds the share of simulated studies that conclude equivalence, by the same rules; `power
--equivalence 5`, and a field on Power, try other bounds than the plan's. The true difference is that of the assumed
effects times `--effects`: 0 is none at all, and one outside the bounds gives the share of false conclusions.

## Bayesian fits

`glmm --bayes`, `analyze --bayes`, Results (Robustness) and `.bayes()` in notebooks draw from the posterior of the same
logistic, probit or Gaussian model: formula, coding, dropped columns and random terms are those of the fit by maximum
likelihood. A study has all random effects that were asked for, because priors keep those near 0 proper.

| part | prior |
|---|---|
| intercept, predictors at their means | normal (0, 1.5) in log-odds |
| each effect | normal (0, `prior_sd`), or (0, 1): of a column of 0 and 1, or of one SD of any other |
| standard deviations of random effects | half-normal (1) |
| correlations | LKJ (2) |
| residual SD of a Gaussian model | half-normal (1) |

Those of a Gaussian model are in standard deviations of the response, and that of its intercept is around the mean: in
another unit the result is the same. Its differences are in the response's unit, and it takes no weights.

```toml
[analysis]
prior_sd = 0.5
priors = { random_sd = 0.5 }
```

**Differences** are those of the planned contrasts, in percentage points averaged over the random effects of each draw,
with equal-tailed 95% intervals, the probability that a difference is positive, and, with `equivalence`, that it lies
between the bounds. A separated cell has an interval too, as wide as the priors are vague (Gelman et al., 2008,
[doi:10.1214/08-AOAS191](https://doi.org/10.1214/08-AOAS191)). All of it is exploratory.

Contrasts with conditions outside the two factors, such as placebos, are of a second fit, of trial type by condition
over all responses, as those by maximum likelihood. It takes as long again. Its effects are differences from the first
condition, so that the prior of a difference between two others is wider by √2.

**Whether to believe it.** NUTS, four chains of 1,000 draws, or of `--draws`. Rank-normalised split R-hat up to 1.01, at
least 400 effective draws in bulk and at the limits of intervals (Vehtari et al., 2021,
[doi:10.1214/20-BA1221](https://doi.org/10.1214/20-BA1221)), and no divergence: else no differences are given.

**Checks.** "What the priors predict" compares the responses with draws from the priors; "responses drawn from the
posterior" is the check of properties below, with parameters drawn as well. Posteriors are within four Monte Carlo
errors of quadrature in two and three dimensions, and with flat priors and many responses within a fifth of a standard
error of maximum likelihood (`tests/study/analysis/test_bayes.py`, `tests/study/analysis/test_bayes_gaussian.py`).
Calibration in studies drawn from the priors is [measured](../benchmarks/README.md#bayesian-fits).

## Robustness of a result

Results, Robustness; `analyze --robustness`; and the switch under Report. All of it is exploratory.

**Without each participant, and without each image.** Every model is fitted again without the responses of one
participant, or to one image, and the tests and differences are computed again with their corrections. A sentence
gives the range of the main difference and names the verdicts that change. The fixed and random effects are those of
the models with all responses. Refits are exact: the search starts at the estimates from all responses, and ends
within 1e-3 of a standard error of a fit to the other rows; standard errors come from the observed information there.
A single Newton step was up to a tenth of a standard error off. Where a cell of the design is empty or separated
without the participant, or 200 responses or fewer are left, the whole fit is made again. With 40 participants and 30
images each of the two takes about 15 s on one core; it grows with the product of participants and responses.

**Specification curve** (Simonsohn, Simmons & Nelson 2020,
[doi:10.1038/s41562-020-0912-z](https://doi.org/10.1038/s41562-020-0912-z)). The largest model is fitted with every
combination of three choices, and each difference is given in percentage points:

| choice | values |
|---|---|
| exclusions | those of the plan, or none |
| random effects | default (slopes), the paper's, intercepts also of images; the plan's own if it has others |
| link | logit, probit |

A sentence counts the specifications that point the same way and the intervals that exclude zero. Choices that make no
other specification in these responses are named there, with the reason, and so are specifications without an interval.
Specifications of the same responses are not independent, so their share is no probability.

**Tests by bootstrap.** For each test of the models, 199 studies are drawn from the smaller model, with new
participants, categories and images, and both models are fitted to each. p is the share of drawn studies whose
likelihood ratio is at least the observed one, with the 95% interval that their number leaves open; a sentence says
whether a verdict changes and where 199 are too few to tell. Log-likelihoods of the refits are within 1e-3 of whole fits
(`tests/study/analysis/test_bootstrap.py`).

**Responses drawn from the model.** 999 sets of responses are drawn from the largest model, and up to eleven
properties of the responses are compared with them: how much participants, images and categories differ, overall,
between trial types and between conditions; the lowest participant and image; whether neighbouring responses are alike;
and the rise over the trials. Two-sided p from the draws, corrected by Holm's method. The draws take the estimates for
the truth, so fewer than 5% of right models are called wrong. **Residuals of participants and images** are their places
among the draws (randomised quantile residuals, Dunn & Smyth 1996,
[doi:10.2307/1390802](https://doi.org/10.2307/1390802)), uniform under the model, with the 95% of each place in the
figure.

## Linear models with `||` and `0 +`

Gaussian models with uncorrelated slopes (`(x || id)`, `(0 + x | id)`) are fitted by the profiled likelihood or REML
criterion of Bates et al. (2015): estimates within 1e-4 and log-likelihoods within 1e-3 of lme4
(`tests/study/analysis/test_lme4.py`). Their coefficients are tested with t and Satterthwaite's degrees of freedom,
which differ from lmerTest's by less than one in 50,000 (`tests/study/analysis/test_denominators.py`). With prior
weights the residual variance of a row is divided by its weight, as in lmer: log-likelihoods and coefficients within
1e-4, standard errors, standard deviations and degrees of freedom within one in 1,000
(`tests/study/analysis/test_gaussian_weights.py`). Weights that are not positive numbers are refused.

## Probit and Poisson models

They have every random term that logistic models have, prior weights and offsets, by the same Laplace approximation with
its exact gradient: profile intervals, the check of convergence, and t with Satterthwaite's degrees of freedom where
there are slopes. Log-likelihoods and coefficients are within 1e-4 of glmmTMB, standard errors within one in 1,000
(`tests/study/analysis/test_densities.py`). The probit's weights are the observed ones, as in glmmTMB; lme4 takes the
expected ones, and so has another log-likelihood.

Signal detection is a probit model with the random effects of the default analysis: participants' own d' and criterion,
and effects of each condition by category and by image, reduced where singular.

## Ordinal models

`glmm --family ordinal` takes a column of whole numbers, the levels of a scale, and fits cumulative logits: the log-odds
of a level up to k are the threshold k less the linear predictor (McCullagh, 1980,
[doi:10.1111/j.2517-6161.1980.tb01109.x](https://doi.org/10.1111/j.2517-6161.1980.tb01109.x)). Thresholds take the place
of the intercept, and each coefficient is the logarithm of one odds ratio of a higher level, the same at each threshold
(proportional odds). Random intercepts and slopes, `||`, offsets, weights, profile intervals and the check of
convergence are those of logistic models, by the same Laplace approximation. There are no quadrature points and no
other link. Coefficients are tested with z; `--means` compares on the link scale, with slopes by t. With
`--scale response` or `--scale population` the means are mean levels, where random effects are 0 (within 2e-5 of
emmeans' mean class) or averaged over them, and `--equivalence 0.5` is half a level.

Coefficients, thresholds, standard errors and standard deviations are within 1e-4 of R's `ordinal::clmm`, and
log-likelihoods within 1e-5, for its wine data (one and two groupings), simulated agreement with two crossed groupings,
and simulated confidence with a random slope (`tests/study/analysis/test_ordinal.py`). A level that never occurs is
named and changes nothing. An estimate that would be infinite is refused with the name of its term.

"Levels by condition" (Results, Exploratory, and every report of a study with a scale or with confidence) is the model
of condition by whether the AI was wrong, with the random effects of the default analysis. It gives the odds ratio of
each condition against the first, where the AI was right and where it was wrong, the mean levels, and a sentence on what
changed (Holm's method). Its tests are t with Satterthwaite's degrees of freedom, computed with an intercept for the
thresholds: of two levels they are those of the logistic model. Confidence with more than ten values is taken in tenths.
Bias, coverage and false positives in simulated studies are
[measured](../benchmarks/README.md#ordinal-models-of-conditions).

**Proportional odds.** "Levels by condition: proportional odds", and a line of `glmm`, compare the model with one
in which each combination of the fixed effects has thresholds of its own, by their likelihood ratio. With contact as the
only effect on the wines, both models are those of R's `clmm2`. It needs factors with all their interactions, and every
level in each combination.
"""

FEW = """\
## Few responses: several searches

The likelihood of a few responses can have more than one maximum. A binomial (logit or probit), Poisson or Gaussian
mixed model of at most {few} responses (of a binomial model the sum of the weights) is therefore searched from the
usual start and from {starts} more: the random effects' standard deviation at {sds} on the link scale (of a Gaussian
model in residual standard deviations), the fixed effects with their sign, at zero and with the opposite sign. A
binomial or Poisson model with `||`, `0 +` or slopes is searched from {own} more; a Gaussian model with `||` or `0 +` is
searched once. The highest finite maximum is reported. Where another lies more than {apart:g} of log-likelihood below, a
sentence gives both values: the data then barely determine the model, and the Laplace approximation is poor at large
standard deviations (compare `--agq 15`).

| binomial responses | a single search missed the maximum | data sets |
|---|---|---|
| 8 to 13, 2 to 4 participants | 22% | 241 |
| 20, 4 participants | 10% | 197 |
| 40, 20 participants | 9% | 200 |
| 80, 40 participants | 3% | 200 |
| 160, 80 participants | 0% | 100 |
| 200, 50 participants | 1% | 150 |
| 400, 100 participants | 0% | 150 |

Simulated with a standard deviation of 3 log-odds between participants. A fit of 192 responses takes .3 to .8 s
instead of .02 s with random intercepts (4 s where a search diverges), and 1.2 to 1.6 s instead of .15 s with
uncorrelated slopes. Larger data are searched once.
"""

POWER = """\
## Power

`power` and the Power page simulate studies and analyse them as planned. `--slope-sd participant=0.8` lets
participants differ in the effect of each trial type, `--slope-sd category=0.5` categories in that of each
explanation, and `--slope-sd item=0.5` images (standard deviations in log-odds; the page has a field for each). The
assumption is named with the result, and so is a plan whose models leave those slopes out. Placebos are contrasted in
a model of trial type by condition with the planned random slopes; those of explanations become slopes of conditions.

Both show the assumed accuracy of each condition and trial type: coefficients are averaged over the random effects by
quadrature, and a mixture of simulated participants over its theories and the trials of the study. A test is significant
below the p by which the results judge the final analysis: the plan's alpha, or what its interim analyses leave for the
last one. The page simulates the planned size too. The planned contrasts are a choice (`--contrasts`), because they
need another fit of the largest model: about twice the time. Holm's correction is over those between simulated
conditions, and a contrast without a finite estimate counts as not significant.

The time is estimated from one simulated study of at most {trial} participants per condition and from the start of one
process, both timed at that moment. On two cores that did other work (load 9) the demo with 10 and 20 participants per
condition and 10 studies took 9 s (estimate 4 s), with 80 participants and 50 studies 21 s (estimate 17 s).
"""

NULL = """\
### False positives and power of the verdicts

Simulated studies in worlds that the analysis does not know, without any effect of explanations on average unless the
row says "power"; participants in all. Each is analysed by the default of a plan, by the same models with chi-square
tests each at .05, and as in the paper. The share of studies with p < .05 in either of the two tests, in any of the nine
contrasts (Holm), and in any of the six differences in d' and criterion (Holm), with its 95% interval (Clopper-Pearson).
Run it with `python -m benchmarks.null_studies`.
"""

PENDING = """\
### False positives

`python -m benchmarks.null_studies` simulates studies without any effect and counts the tests that reject. It has no
result yet.
"""


def render_page() -> str:
    """Render the whole page."""
    coverage = _result("coverage")
    assert coverage is not None
    return "\n".join(
        [
            *_accuracies(coverage),
            "",
            OTHER.format(studies=coverage["studies"]),
            *_tabulate_sizes(coverage),
            "",
            *_detection(coverage),
            SLOPES.format(rule=RULE, models="\n".join(f'{name} = "{model}"' for name, model in DEFAULT.items())),
            LINEAR,
            _few(),
            POWER.format(trial=TRIAL),
            *_null(_result("null_studies")),
            "",
        ]
    )


def _accuracies(record: dict[str, Any]) -> list[str]:
    """Tabulate the coverage of each cell of Figure 1 by the number of participants per condition."""
    cells, sizes = record["cells"], record["sizes"]
    head = HEAD.format(
        trials=record["trials"],
        trials_of_type=record["trials"] // len({cell["trial_type"] for cell in cells}),
        sizes=_enumerate(sizes),
        cell_studies=cells[0]["studies"],
        cell_error=max(cell["error"] for cell in cells),
    )
    shares = {(cell["condition"], cell["trial_type"], cell["per_condition"]): cell for cell in cells}
    rows = [
        [condition, kind, f"{shares[condition, kind, sizes[0]]['accuracy']:.0%}"]
        + [f"{shares[condition, kind, size]['coverage']:.1%}" for size in sizes]
        for condition, kind in dict.fromkeys((cell["condition"], cell["trial_type"]) for cell in cells)
    ]
    columns = ["condition", "trial type", "true accuracy", *(f"{size} participants" for size in sizes)]
    return [head, *format_table(columns, rows)]


def _tabulate_sizes(record: dict[str, Any]) -> list[str]:
    """Tabulate the coverage of every measure, with its error, by the number of participants per condition."""
    rows = {(row["measure"], row["per_condition"]): row for row in record["rows"]}
    measures = [name for name in dict.fromkeys(name for name, _ in rows) if FALSE_POSITIVES not in name]
    table = [
        [name, *(f"{rows[name, size]['coverage']:.1%} ± {rows[name, size]['error']:.1%}" for size in record["sizes"])]
        for name in measures
    ]
    return format_table(["interval", *(f"{size} participants" for size in record["sizes"])], table)


def _enumerate(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" or {numbers[-1]}"


def _few() -> str:
    return FEW.format(
        few=starts.FEW,
        starts=len(starts.SDS) * len(starts.SIGNS),
        sds=", ".join(f"{sd:g}" for sd in starts.SDS),
        apart=starts.APART,
        own=len(search.SDS) * len(starts.SIGNS),
    )


def _detection(record: dict[str, Any]) -> list[str]:
    rows = [row for row in record["rows"] if FALSE_POSITIVES in row["measure"]]
    shares = ", ".join(f"{row['coverage']:.1%} ± {row['error']:.1%}" for row in rows)
    return [
        f"Equal d' with different criteria is called a difference in sensitivity in {shares} of comparisons with "
        f"{', '.join(str(row['per_condition']) for row in rows)} participants per condition (5% would be exact).",
        "",
    ]


def _null(record: dict[str, Any] | None) -> list[str]:
    if record is None:
        return [PENDING]
    fewest = min(count["studies"] for count in record["counts"])
    few = (
        f"In rows of {fewest} studies an interval is wide: they can show that an analysis rejects far too often, and "
        "not that one is right.\n"
        if fewest < FEW_STUDIES
        else ""
    )
    return [NULL, *([few] if few else []), *_state_excess(record), *tabulate_null_studies(record)]


def _state_excess(record: dict[str, Any]) -> list[str]:
    """Say in which of the rows that are long enough the default's verdicts reject more often than their alpha."""
    rows = [
        row
        for row in record["rows"]
        if (row["analysis"], row["test"]) == ("default", "any test")
        and row["studies"] >= FEW_STUDIES
        and "power" not in row["world"]
    ]
    over = [
        f"{row['world']}, {row['participants']} participants ({row['rejected']:.1%})"
        for row in rows
        if row["low"] > ALPHA
    ]
    if not over:
        return []
    return [f"Over the nominal 5%, beyond chance: {'; '.join(over)}. Ten categories are few for their slopes.\n"]


def _result(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["result"] if path.is_file() else None
