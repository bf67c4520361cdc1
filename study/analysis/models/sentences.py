"""Warnings about a fit in plain language."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from study.analysis.models.formula import NOTHING
from study.analysis.models.records import Coefficient, RandomEffect
from study.bundle import TYPE_LABELS

LEVEL = 0.05
"""The p-value below which a test counts as evidence, unless a plan sets another."""

BOUNDARY = "Boundary (singular) fit"
"""Begins the sentence on a variance estimated as zero."""
OUTSIZED = 10.0
"""A coefficient (log-odds) beyond this is a reason to look at the data, or at the predictor's unit."""
SHOWN = 6
"""Separated cells named in one sentence; the rest are counted."""

WORDS = {f"trial_type{kind}": label for kind, label in TYPE_LABELS.items()}

_SAID_OTHERWISE = {"singular", "glm_diverged", "gradient_search_fallback", "exact_profile_fallback"}
"""In plainer words; and which search was taken does not matter where the top is checked."""


_HYPOTHESES = {
    ("null", "explanation"): "explanations change {act}",
    ("explanation", "interaction"): (
        "the effect of explanations depends on the trial type or on the other explanation"
    ),
}

_TESTS = {
    ("null", "explanation"): "Effect of explanations",
    ("explanation", "interaction"): "Dependence on trial type or the other explanation",
}


def alpha_text(level: float) -> str:
    """Format a significance level as articles print it: ``".05"``, ``".0146"``."""
    return f"{level:.4f}".rstrip("0").removeprefix("0")


def coverage_text(level: float) -> str:
    """Format the coverage of intervals at a significance level: ``"95%"``, ``"99%"``."""
    return f"{100 * (1 - level):.4g}%"


def describe_hypothesis(smaller: str, larger: str, *, act: str) -> str:
    """Describe in a clause what holds if the larger of two nested models is the right one.

    ``act`` is what correct participants do, such as ``"predict the AI correctly"``; or, if it begins with "how", all
    that explanations may change.
    """
    act = act if act.startswith("how ") else f"how often participants {act}"
    known = _HYPOTHESES.get((smaller, larger), f"the {larger} model fits better than the {smaller} model")
    return known.replace("{act}", act)


def name_test(smaller: str, larger: str) -> str:
    """Name what a test of two nested models is of, for a table: ``"Effect of explanations"``."""
    return _TESTS.get((smaller, larger), f"{larger} vs {smaller}")


def p_text(p: float | None) -> str:
    """Format a p-value as articles print it: ``".034"``, ``"< .001"``, and a dash where there is none."""
    if p is None:
        return "–"
    if p < 0.001:
        return "< .001"
    return f"{p:.3f}".removeprefix("0") if p < 0.9995 else "> .999"


def describe_p(p: float | None) -> str:
    """Write a p-value in a sentence: ``"p = .034"``, ``"p < .001"``."""
    text = p_text(p)
    return f"p {text}" if text[0] in "<>–" else f"p = {text}"


def keep_whole(sentence: str) -> str:
    """Let no line end within "p = .021"."""
    return re.sub(r"\bp ([=<>]) ", "p\u00a0\\1\u00a0", sentence)


def words(term: str) -> str:
    """Write a term in words: ``"AI right × saliency"``."""
    return " × ".join(WORDS.get(part, part) for part in term.split(":"))


def _list_terms(terms: Sequence[str]) -> str:
    return ", ".join(map(words, terms))


def describe_separation(cells: Sequence[str], diverging: tuple[str, ...]) -> tuple[str, ...]:
    """Name the separated cells and the coefficients without a finite estimate."""
    shown = "; ".join(cells[:SHOWN]) + (f"; and {len(cells) - SHOWN} more cells" if len(cells) > SHOWN else "")
    return (
        f"Separation: {shown}. These coefficients have no finite estimate and no p-value: {_list_terms(diverging)}. "
        "The log-likelihood, the likelihood-ratio tests and the other coefficients are valid.",
    )


def describe_aliased_columns(dropped: tuple[str, ...], equal: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Name the columns that are linear combinations of others in these data.

    Parameters
    ----------
    equal
        Of columns that were kept, the dropped ones that are the same.
    """
    if not dropped:
        return ()
    columns = f"{len(dropped)} column{'s' if len(dropped) > 1 else ''}"
    groups = "; ".join(" = ".join(map(words, (kept, *others))) for kept, others in equal.items())
    shared = f" Columns that are equal in these data share one coefficient: {groups}." if groups else ""
    return (
        f"Left out {columns} that cannot be estimated (collinear with other columns, or a combination of levels "
        f"without rows): {_list_terms(dropped)}.{shared}",
    )


def describe_slopes_left_out(effects: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Name the random effects that the responses outside separated cells say nothing about."""
    if not effects:
        return ()
    named = ", ".join(f"{words(term)} by {group}" for term, group in effects)
    return (
        f"Random effects that vary only in separated cells were left out, because the other responses do not determine "
        f"them: {named}.",
    )


def boundary(random: tuple[RandomEffect, ...], unit: float = 1.0) -> tuple[str, ...]:
    """List the variances estimated as zero, against `unit`: the residual SD of a linear model."""
    return tuple(
        f"{BOUNDARY}: the standard deviation{_of_slope(r)} between levels of {r.group} is estimated as 0; "
        f"the responses differ between them no more than sampling error explains."
        for r in random
        if r.sd < NOTHING * unit
    )


def _of_slope(effect: RandomEffect) -> str:
    return "" if effect.term == "(Intercept)" else f" of {words(effect.term)}"


def describe_outsized_estimates(coefficients: tuple[Coefficient, ...]) -> tuple[str, ...]:
    """List implausibly large estimates, and standard errors that could not be computed."""
    return tuple(
        f"The estimate of {words(c.term)} is {c.estimate:.1f} log-odds per unit. Unless its unit is a large step of "
        "the predictor, look for cells in which nearly all responses are the same, or rescale the predictor."
        for c in coefficients
        if abs(c.estimate) > OUTSIZED
    ) + tuple(f"The standard error of {words(c.term)} could not be computed." for c in coefficients if c.se is None)


def several_maxima(raw: Any) -> tuple[str, ...]:
    """Report that other starting values led to other maxima of the likelihood (`study.analysis.models.starts`)."""
    if "maxima" not in raw.diagnostics:
        return ()
    (best, wide), (lower, narrow) = raw.diagnostics["maxima"]
    return (
        f"The likelihood has more than one maximum: the log-likelihood is {best:.3f} at the one reported (standard "
        f"deviation of random effects {wide:.2f}) and {lower:.3f} at another ({narrow:.2f}). These responses are too "
        "few to determine the model.",
    )


def list_warnings(raw: Any) -> tuple[str, ...]:
    """List the warnings of `glmm` that this module does not rephrase, and several maxima."""
    return several_maxima(raw) + tuple(
        f"{w['title']}. {w['message']}" for w in raw.warnings if w["kind"] not in _SAID_OTHERWISE
    )


def reason(raw: Any) -> str:
    """Explain why the fit failed, in the words of `glmm`."""
    return " ".join(str(w["message"]) for w in raw.warnings) or "the search found no maximum."
