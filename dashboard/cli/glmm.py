"""``glmm``: one mixed model of a file, its estimated means, contrasts and average effects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.errors import ForetellError
from dashboard.cli.options import CommaMeaning, parse_pairs
from dashboard.cli.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from study.analysis.means.adjustment import Adjustment
    from study.analysis.models.marginal import Scale
    from study.analysis.models.records import MixedModel


def glmm(
    csv: Annotated[Path, typer.Argument(help="A CSV file.")],
    formula: Annotated[str, typer.Option(help="Formula as in lme4.")],
    family: Annotated[str, typer.Option(help="binomial, gaussian or poisson.")] = "binomial",
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

    Example: python foretell.py glmm responses.csv --formula "correct ~ trial_type + (1|participant)" --json -
    """
    from study.analysis.models import coding, mixed, printing
    from study.analysis.models import formula as formulas
    from study.analysis.responses import reading as responses

    if contrast and not means:
        raise ForetellError("--contrast needs --means: name the factors whose means it compares.")
    names = [*(factor or ()), *formulas.groupings(formula)]
    used = formulas.list_names(formula) | {weights or ""}
    frame = coding.with_reference(
        responses.table(csv, names, optional=len(names) - len(factor or ()), among=used, comma=comma),
        parse_pairs(reference or [], "--reference", "column=level"),
    )
    model = mixed.fit(frame, formula, family=family, link=link, agq=agq, reml=reml, weights=weights)
    if json_file is None:
        say("\n".join(printing.lines(model)))
    lines, values = _estimate(frame, model, means or [], contrast or ["pairwise"], adjust, effects or [], scale)
    if json_file is None:
        if lines:
            say("\n".join(lines))
        return
    text = json.dumps(model.as_dict() | values, indent=1)
    if str(json_file) == "-":
        say(text)
    else:
        json_file.write_text(text + "\n", encoding="utf-8")


def _estimate(
    frame: pd.DataFrame,
    model: MixedModel,
    means: list[str],
    contrast: list[str],
    adjust: Adjustment,
    effects: list[str],
    scale: Scale | None,
) -> tuple[list[str], dict[str, Any]]:
    """Estimate the means and effects that are asked for, as lines and as values for JSON."""
    from study.analysis.means import effects as average
    from study.analysis.means import printing
    from study.analysis.means.means import estimate_means

    made = [
        estimate_means(frame, model, one, contrasts=contrast, adjust=adjust, scale=scale or "link") for one in means
    ]
    tables = [average.estimate_effects(frame, model, one, scale=scale or "population") for one in effects]
    lines = [line for one in made for line in ("", *printing.write_means(one))]
    if tables:
        lines += ["", *printing.write_effects(tables, scale or "population")]
    values: dict[str, Any] = {}
    if made:
        values["means"] = [printing.as_dict(one) for one in made]
    if tables:
        values["effects"] = [printing.list_rows(table) for table in tables]
    return lines, values
