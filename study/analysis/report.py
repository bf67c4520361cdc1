"""What is handed over: Table 1, the tests, Figure 1 and a short report, each written whole or not at all."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from study.analysis import contrasts, document, exploratory, figures, intervals, nested, placebos
from study.analysis.nested import NestedAnalysis, RatioTest
from study.analysis.planned import Planned
from study.analysis.records import Coefficient, MixedModel
from study.analysis.responses import Responses
from study.analysis.sentences import p_text as p_text
from study.files import write_whole

TITLE = "Do explanations help people foretell the AI?"
WORDS = {
    "(Intercept)": "(Intercept)",
    "trial_typestd_incorrect": "standard incorrect",
    "trial_typestd_correct": "standard correct",
}
COLUMNS = ["term", "estimate", "se", "low", "high", "z", "p", "stars", "odds_ratio"]
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


def stars(p: float | None) -> str:
    """The customary stars: * below .05, ** below .01, *** below .001."""
    return "" if p is None else next((mark for bound, mark in STARS if p < bound), "")


def words(term: str) -> str:
    """A term in words: ``"standard correct × saliency"``."""
    return " × ".join(WORDS.get(part, part) for part in term.split(":"))


def table(model: MixedModel) -> pd.DataFrame:
    """Table 1: term, estimate, se, low, high (95 %, Wald), z, p, stars, odds_ratio.

    Infinite estimates stand as such, without se, interval, z and p.
    """
    rows = [_row(c, model.limit(c)) for c in model.coefficients]
    return pd.DataFrame(rows).assign(**intervals.wald(model)[["low", "high"]])[COLUMNS]


def _row(c: Coefficient, estimate: float) -> dict[str, object]:
    with np.errstate(over="ignore"):
        ratio = float(np.exp(estimate))
    return {
        "term": words(c.term),
        "estimate": estimate,
        "se": c.se,
        "z": c.z,
        "p": c.p,
        "stars": stars(c.p),
        "odds_ratio": ratio,
    }


def latex(model: MixedModel) -> str:
    """Table 1 for a LaTeX document with the package booktabs."""
    body = [
        f"{_term_latex(c.term)} & {_estimate_latex(c, model.limit(c))} & {_number_latex(c.se)} & "
        f"{_number_latex(c.z)} & {_p_latex(c.p)} \\\\"
        for c in model.coefficients
    ]
    lines = [
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r"Term & $\beta$ & SE & $z$ & $p$ \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _term_latex(term: str) -> str:
    return words(term).replace("_", r"\_").replace(" × ", r" $\times$ ")


def _number_latex(value: float | None) -> str:
    if value is None:
        return "--"
    text = f"{value:.2f}"
    return text.replace("-", "$-$") if float(text) else "0.00"


def _estimate_latex(c: Coefficient, estimate: float) -> str:
    if math.isinf(estimate):
        return r"$-\infty$" if estimate < 0 else r"$\infty$"
    mark = stars(c.p)
    return _number_latex(None if math.isnan(estimate) else estimate) + (f"$^{{{mark}}}$" if mark else "")


def _p_latex(p: float | None) -> str:
    return p_text(p).replace("< ", "$<$ ").replace("> ", "$>$ ").replace("–", "--")


def test_sentence(test: RatioTest) -> str:
    """A likelihood-ratio test in one sentence of plain words."""
    added = {
        ("null", "explanation"): "explanations change how often people foretell the AI",
        (
            "explanation",
            "interaction",
        ): "the effect of explanations depends on the trial type or on the other explanation",
    }.get((test.smaller, test.larger), f"the {test.larger} model fits better than the {test.smaller} model")
    if test.p is None:
        return f"These data cannot say whether {added}: both models have the same parameters."
    verdict = "There is evidence that" if test.p < 0.05 else "There is no clear evidence that"
    p = p_text(test.p)
    p = p if p[0] in "<>" else f"= {p}"
    return f"{verdict} {added} (χ²({test.df}) = {test.chisq:.2f}, p {p})."


def tests_table(analysis: NestedAnalysis) -> pd.DataFrame:
    """The likelihood-ratio tests: smaller, larger, chisq, df, p."""
    return pd.DataFrame(analysis.as_dict()["lrt"])


def write(
    analysis: NestedAnalysis, data: Responses, out: Path, *, seed: int = 0, plan: Planned | None = None
) -> tuple[Path, ...]:
    """Write the results into `out`: the same bytes for the same rows, plan, seed, code and versions.

    Parameters
    ----------
    data
        The responses the analysis was made from.
    out
        Folder, made if absent; files of the same names are replaced.
    seed
        Seed of everything resampled.
    plan
        What the plan gave, if there was one; without it the page labels everything exploratory.
    """
    figure, numbers = figures.accuracy_figure(data, rng=np.random.default_rng(seed))
    model = list(analysis.models.values())[-1]
    found, absent = exploratory.measures(data.frame, seed=seed)
    tables = {
        "table1": table(model),
        "lrt": tests_table(analysis),
        "models": nested.comparison(analysis),
        "figure1": numbers,
        "contrasts": plan.contrasts if plan else placebos.together(data, model, _asked(data)),
        **({"exclusions": plan.exclusions} if plan else {}),
        **{f"exploratory_{measure.name}": measure.table for measure in found},
    }
    files = {
        "models.json": json.dumps(analysis.as_dict(), indent=2, allow_nan=False) + "\n",
        **{f"{name}.csv": content.to_csv(index=False, lineterminator="\n") for name, content in tables.items()},
        "table1.tex": latex(model),
        "figure1.html": figure.to_html(include_plotlyjs=True, full_html=True, div_id="figure1"),
        "report.md": markdown(analysis, data, seed=seed, plan=plan),
        "report.html": _page(analysis, data, tables, figure, found, absent, seed, plan),
    }
    return tuple(write_whole(out / name, text.encode()) for name, text in files.items())


def _page(
    analysis: NestedAnalysis,
    data: Responses,
    tables: dict[str, pd.DataFrame],
    figure: go.Figure,
    found: list[exploratory.Measure],
    absent: list[str],
    seed: int,
    plan: Planned | None,
) -> str:
    label = "exploratory" if plan is None else ("planned" if plan.final else "planned, interim")
    holm = "Link scale; p_holm is corrected for the number of contrasts (Holm)."
    sections = [
        ("Figure 1", label, "95 % intervals, participants resampled.", tables["figure1"], figure),
        ("Models", label, "Each tested against the one before.", tables["models"], None),
        ("Table 1", label, "Log-odds with 95 % Wald intervals.", tables["table1"], None),
        ("Contrasts", label, holm, tables["contrasts"], None),
        *([("Exclusions", label, plan.stopping, plan.exclusions, None)] if plan else []),
        *document.labelled(found),
    ]
    answer = [test_sentence(test) for test in analysis.tests]
    notes = [*_planned_lines(plan), *analysis.messages, *(f"Not shown. {line}" for line in absent)]
    made_from = document.provenance(data, plan.plan if plan else None, seed)
    return document.page(TITLE, answer, sections, notes, made_from)


def _asked(data: Responses) -> list[contrasts.Contrast]:
    """Each explanation against none, and against its placebo where there was one."""
    return [*contrasts.DEFAULT, *placebos.asked(data)]


def _planned_lines(plan: Planned | None) -> list[str]:
    if plan is None:
        return ["No analysis plan was given: everything here is exploratory."]
    return [f"Planned before the data: models, contrasts, exclusions and stopping rule. {plan.stopping}"]


def markdown(analysis: NestedAnalysis, data: Responses, *, seed: int = 0, plan: Planned | None = None) -> str:
    """The report: data, tests, models, and what to know before believing them."""
    frame = data.frame
    people = frame.groupby("condition")["participant"].nunique()
    messages = [f"- {message}" for message in analysis.messages] or ["- None."]
    made_from = document.provenance(data, plan.plan if plan else None, seed)
    return "\n".join(
        [
            f"# {TITLE}",
            "",
            *[test_sentence(test) for test in analysis.tests],
            "",
            *_planned_lines(plan),
            "",
            "## Data",
            "",
            f"{len(frame):,} answers of {frame['participant'].nunique():,} participants "
            f"({', '.join(f'{name}: {count}' for name, count in people.items())}) to {frame['category'].nunique():,} "
            f"target categories; {data.dropped:,} rows left out.",
            "",
            *(_exclusions(plan) if plan else []),
            "## Models",
            "",
            "Logistic mixed models, crossed random intercepts of participant and category, maximum likelihood "
            "(Laplace approximation). Reference levels: adversarial incorrect, no saliency, no examples.",
            "",
            *_models_table(analysis),
            "",
            "Table 1 (the largest model) is in `table1.csv` and `table1.tex`; Figure 1 in `figure1.html`, its "
            f"intervals from resampled participants (seed {seed}); everything on one page in `report.html`, where "
            "what was not planned is labelled exploratory.",
            "",
            "## Before believing them",
            "",
            *messages,
            "",
            "## What made these numbers",
            "",
            *[f"- {name}: `{value}`" for name, value in made_from.items()],
            "",
        ]
    )


def _exclusions(plan: Planned) -> list[str]:
    rows = [f"| {r.rule} | {r.people} | {r.answers} |" for r in plan.exclusions.itertuples()]
    if not rows:
        return ["The plan excludes nobody.", ""]
    return ["| excluded by rule | people | answers |", "|---|---|---|", *rows, ""]


def _models_table(analysis: NestedAnalysis) -> list[str]:
    lines = [
        "| model | log-likelihood | parameters | sd participant | sd category | converged |",
        "|---|---|---|---|---|---|",
    ]
    for name, model in analysis.models.items():
        sd = {effect.group: f"{effect.sd:.3f}" for effect in model.random}
        lines.append(
            f"| {name} | {model.loglik:.3f} | {model.df} | {sd.get('participant', '–')} | {sd.get('category', '–')} | "
            f"{'yes' if model.converged else 'no'} |"
        )
    return lines
