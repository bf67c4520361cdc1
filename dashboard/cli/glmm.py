"""``glmm``: one mixed model of a file, its estimated means, contrasts and average effects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from core.errors import ForetellError
from dashboard.cli.options import CommaMeaning, parse_pairs
from dashboard.cli.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from study.analysis.means.adjustment import Adjustment
    from study.analysis.models.marginal import Scale
    from study.analysis.models.records import MixedModel
    from study.plan.equivalence import Bounds


def glmm(
    csv: Annotated[Path, typer.Argument(help="A CSV file.")],
    formula: Annotated[str, typer.Option(help="Formula as in lme4.")],
    family: Annotated[str, typer.Option(help="binomial, ordinal (levels 1, 2, 3), gaussian or poisson.")] = "binomial",
    link: Annotated[str | None, typer.Option(help="For a binomial model: logit or probit.")] = None,
    factor: Annotated[list[str] | None, typer.Option(help="A numeric column to treat as a factor. Repeatable.")] = None,
    reference: Annotated[list[str] | None, typer.Option(help="Reference level, column=level.")] = None,
    weights: Annotated[str | None, typer.Option(help="Column of prior weights.")] = None,
    reml: Annotated[bool, typer.Option("--reml", help="For a gaussian model: restricted maximum likelihood.")] = False,
    agq: Annotated[int, typer.Option(help="Quadrature points; 1 is Laplace.")] = 1,
    means: Annotated[
        list[str] | None,
        typer.Option(help="Estimated means of factors: 'a', 'a * b' or 'a | b' (within each b). Repeatable."),
    ] = None,
    contrast: Annotated[
        list[str] | None,
        typer.Option(
            help="Of the means: pairwise, reference (each against the first), 'b - a', or weights "
            "'b=1, a=-1/2, c=-1/2'. Repeatable; pairwise if left out."
        ),
    ] = None,
    adjust: Annotated[
        Literal["none", "holm", "tukey", "mvt"],
        typer.Option(help="Correction of contrasts: none, holm, tukey or mvt (simultaneous max-t)."),
    ] = "holm",
    equivalence: Annotated[
        str | None,
        typer.Option(
            help="Also test whether each contrast lies between these bounds, in percentage points (of other responses "
            "than binomial ones in their unit): 5, or -5,10."
        ),
    ] = None,
    prior_sd: Annotated[
        float | None,
        typer.Option(
            help="Bayes factors of contrasts for no difference: SD of the normal prior, on the link scale. With "
            "--bayes: that of the prior of effects (default 1; of a gaussian model in SDs of the response)."
        ),
    ] = None,
    effects: Annotated[
        list[str] | None,
        typer.Option(help="Average marginal effects of a predictor: 'a' or 'a | b' (for each b). Repeatable."),
    ] = None,
    scale: Annotated[
        Literal["link", "response", "population"] | None,
        typer.Option(
            help="link (log-odds; default of means), response (random effects of 0), or population (averaged over the "
            "random effects; default of effects)."
        ),
    ] = None,
    bayes: Annotated[
        bool,
        typer.Option(
            "--bayes", help="Draw from the posterior of a binomial or gaussian model instead (requirements-bayes.txt)."
        ),
    ] = False,
    draws: Annotated[int | None, typer.Option(help="With --bayes: draws of each of the four chains.")] = None,
    seed: Annotated[int | None, typer.Option(help="With --bayes: random seed.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the model to this file; - for stdout.")
    ] = None,
    comma: CommaMeaning = None,
) -> None:
    """Fit one mixed model to a CSV, with estimated means, contrasts and average effects.

    Random terms as in lme4: (1|g), (x|g), (x||g), (0+x|g), (1|a/b). Grouping columns are read as factors. Write names
    with spaces in backticks. The CSV may have commas, semicolons or tabs, and decimal commas; empty cells, NA, NaN and
    nan are missing values.

    Means are estimated marginal means, as of R's emmeans: --means "explanation | trial_type" --adjust mvt.

    Of an ordinal model (cumulative logit), the response is a column of whole numbers, the levels of a scale.

    Example: python foretell.py glmm responses.csv --formula "correct ~ trial_type + (1|participant)" --json -
    """
    from dashboard.cli import bayesian
    from study.analysis.means import bayes_factors
    from study.analysis.means.equivalence import read_bounds
    from study.analysis.models import coding, explained, mixed, printing
    from study.analysis.models import formula as formulas
    from study.analysis.responses import reading as responses

    sampling = bayesian.read_options(
        wanted=bayes,
        prior_sd=prior_sd,
        draws=draws,
        seed=seed,
        others={
            "--family": family not in ("binomial", "gaussian"),
            "--reml": reml,
            "--agq": agq != 1,
            "--adjust": adjust != "holm",
            "--effects": bool(effects),
            "--scale": scale not in (None, "population"),
        },
    )
    needing = {"--contrast": contrast, "--equivalence": equivalence, "--prior-sd": None if bayes else prior_sd}
    for option, given in needing.items():
        if given is not None and not means:
            raise ForetellError(f"{option} needs --means: name the factors whose means it compares.")
    bounds = None if equivalence is None else read_bounds(equivalence)
    prior_sd = None if prior_sd is None or bayes else bayes_factors.check_prior_sd(prior_sd)
    names = [*(factor or ()), *formulas.groupings(formula)]
    used = formulas.list_names(formula) | {weights or ""}
    frame = coding.with_reference(
        responses.table(csv, names, optional=len(names) - len(factor or ()), among=used, comma=comma),
        parse_pairs(reference or [], "--reference", "column=level"),
    )
    asked = ContrastOptions(tuple(contrast or ["pairwise"]), adjust, scale, bounds, prior_sd)
    if sampling is not None:
        rows = {"formula": formula, "family": family, "link": link, "weights": weights}
        lines, values = bayesian.estimate(frame, rows, means or [], asked.contrasts, bounds, sampling)
        _hand_over(lines, values, json_file)
        return
    model = mixed.fit(frame, formula, family=family, link=link, agq=agq, reml=reml, weights=weights)
    if json_file is None:
        say("\n".join(filter(None, [*printing.lines(model), explained.describe(frame, model)])))
        if model.diverging:
            say("A Bayesian fit has intervals of these coefficients: add --bayes.")
    lines, values = _estimate(frame, model, means or [], asked, effects or [])
    _hand_over(lines, model.as_dict() | values, json_file)


def _hand_over(lines: list[str], values: dict[str, Any], json_file: Path | None) -> None:
    """Print the lines, or write the values as JSON."""
    if json_file is None:
        if lines:
            say("\n".join(lines))
        return
    text = json.dumps(values, indent=1)
    if str(json_file) == "-":
        say(text)
    else:
        json_file.write_text(text + "\n", encoding="utf-8")


class ContrastOptions(NamedTuple):
    """What is asked about contrasts: which, corrected how, on which scale, and evidence for no difference."""

    contrasts: tuple[str, ...]
    adjust: Adjustment
    scale: Scale | None
    bounds: Bounds | None
    prior_sd: float | None


def _estimate(
    frame: pd.DataFrame, model: MixedModel, means: list[str], asked: ContrastOptions, effects: list[str]
) -> tuple[list[str], dict[str, Any]]:
    """Estimate the means and effects that are asked for, as lines and as values for JSON."""
    from study.analysis.means import effects as average
    from study.analysis.means import printing

    lines, values = _describe_odds(frame, model) if model.thresholds else ([], {})
    if means:
        values["means"] = []
    for one in means:
        said, value = _estimate_means(frame, model, one, asked)
        lines += said
        values["means"].append(value)
    tables = [average.estimate_effects(frame, model, one, scale=asked.scale or "population") for one in effects]
    if tables:
        lines += ["", *printing.write_effects(tables, asked.scale or "population", is_ordinal=bool(model.thresholds))]
        values["effects"] = [printing.list_rows(table) for table in tables]
    return lines, values


def _describe_odds(frame: pd.DataFrame, model: MixedModel) -> tuple[list[str], dict[str, Any]]:
    """Return an ordinal model's odds ratios as values, and say whether they hold at each threshold."""
    from study.analysis.means import printing
    from study.analysis.models import intervals, proportional

    values: dict[str, Any] = {"odds_ratios": printing.list_rows(intervals.odds_ratios(model))}
    try:
        made = proportional.check(frame, model)
    except ForetellError as error:
        return [str(error)], values
    values["proportional_odds"] = {"chisq": made.chisq, "df": made.df, "p": made.p}
    return [proportional.describe(made)], values


def _estimate_means(
    frame: pd.DataFrame, model: MixedModel, means: str, asked: ContrastOptions
) -> tuple[list[str], dict[str, Any]]:
    """Estimate means and their contrasts, with evidence for no difference where it is asked for."""
    from study.analysis.means import bayes_factors, equivalence, printing
    from study.analysis.means.means import estimate_means
    from study.analysis.models.marginal import get_link

    how: dict[str, Any] = {"contrasts": asked.contrasts, "adjust": asked.adjust}
    made = estimate_means(frame, model, means, scale=asked.scale or "link", **how)
    lines, values = ["", *printing.write_means(made)], printing.as_dict(made)
    if asked.bounds is not None:
        tests = equivalence.compute_equivalence(frame, model, made, asked.bounds, **how)
        lines += ["", *printing.write_equivalence(tests)]
        values["equivalence"] = {"bounds": list(tests.bounds), "contrasts": printing.list_rows(tests.table)}
    if asked.prior_sd is not None:
        link = made if made.scale == "link" else estimate_means(frame, model, means, scale="link", **how)
        table = bayes_factors.tabulate(link.contrasts, asked.prior_sd)
        lines += ["", *printing.write_bayes_factors(table, asked.prior_sd, get_link(model))]
        values["bayes_factors"] = printing.list_rows(table)
    return lines, values
