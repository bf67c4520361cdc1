"""The page ``docs/faithfulness.md`` from ``benchmarks/results/faithfulness.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.attribution import METHODS

ZOO = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "zoo.json"
RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "faithfulness.json"

HEAD = """\
# How well the heatmap methods do

<!-- Written by `python docs/generate.py` from benchmarks/results/faithfulness.json. Do not edit by hand. -->

Every method with its defaults, measured by `python foretell.py bench faithfulness`. There are two questions and two
tables. Neither says that a single heatmap is faithful: that is the purpose of its certificate and of the measures
shown with it.
"""

POINTING = """\
## Does the heatmap point at the object?

The pointing game (Zhang et al. 2016) on {photographs} photographs of COCO with boxes of the network's class, for a
MobileNetV2 with ImageNet weights: the share of heatmaps whose maximum lies in a box, or at most {tolerance:g} px from
it. The centre of the photograph hits {centre}, a random pixel of the network's input {random:.2f}, and a random pixel
of the whole photograph {anywhere:.2f}. Photographers centre their subject, so a method has to outperform the centre. p
is McNemar's exact test against the centre, Holm-corrected for all methods in the table. Seconds are those of one
heatmap on one busy core.
"""

CONTEXTS = """\
## Does the heatmap show how much the context matters?

On the scenes the causal effect of the context is known: the same object is placed in every other context, the same
context gets every other object, and the target's logit measures both effects. The first column is Spearman's
correlation over {scenes} scenes between the context's share of the heatmap's evidence and its share of that effect,
with a 95% bootstrap interval; a uniform heatmap would reach {even:+.2f}. The second column is the context's mean
share in the heatmaps; by intervention it is {effect:.2f}. A method that always highlights the object understates the
context.

On the demo's network a plain class activation map does as well as Bayesian teaching: {cam} and
{teaching}, and the intervals overlap. The demo shows that a heatmap can reveal how much a network
relies on the context. It is no evidence that one of these methods is better than another.

Methods part on the [networks with a known difference](zoo.md#which-heatmap-methods-find-the-differences). A network
that sees no details ({coarse}) is told from the built-in one with an area under the ROC curve of
{gradients} by integrated gradients, but of {coarse_teaching} by Bayesian teaching and
{coarse_cam} by a class activation map. Whether a network uses the context at all ({blind})
most methods show, and again these two alike: {blind_teaching} and {blind_cam}.
"""


def render_page() -> str:
    """Render the whole page."""
    result = json.loads(RESULTS.read_text(encoding="utf-8"))["result"]
    return "\n".join([HEAD, *_pointing(result["pointing"]), "", *_contexts(result["contexts"]), ""])


def _pointing(figures: dict[str, Any]) -> list[str]:
    text = POINTING.format(
        photographs=figures["photographs"],
        tolerance=figures["tolerance_px"],
        centre=_share(figures["centre"]),
        random=figures["random_pixel"],
        anywhere=figures["random_pixel_anywhere"],
    )
    order = sorted(figures["methods"], key=lambda name: -figures["methods"][name]["share"])
    rows = [
        f"| `{name}` | {_share(figures['methods'][name])} | {_p(figures['methods'][name]['p_holm'])} "
        f"| {figures['seconds_per_map'][name]:.2g} |"
        for name in order
    ]
    return [text, "| method | hits | p | seconds |", "|---|---|---|---|", *rows, *_explain_omissions(figures)]


def _differences() -> dict[str, str]:
    """Return how well some methods tell networks of the zoo from the built-in one, as `docs/zoo.md` has it."""
    methods_of = {one["network"]: one["methods"] for one in json.loads(ZOO.read_text())["result"]["differences"]}
    coarse, blind = methods_of["scenes:coarse"], methods_of["scenes:blind"]
    return {
        "coarse": "`scenes:coarse`",
        "gradients": _area(coarse["integrated_gradients"]),
        "coarse_teaching": _area(coarse["bayesian_teaching"]),
        "coarse_cam": _area(coarse["cam"]),
        "blind": "`scenes:blind`",
        "blind_teaching": _area(blind["bayesian_teaching"]),
        "blind_cam": _area(blind["cam"]),
    }


def _area(area: dict[str, Any]) -> str:
    return f"{area['auc']:.2f} {_interval(area['interval_95'])}"


def _contexts(figures: dict[str, Any]) -> list[str]:
    logit = figures["methods"]
    text = CONTEXTS.format(
        scenes=figures["scenes"],
        even=figures["even_map"]["logit"]["spearman"],
        effect=figures["mean_share_of_the_effect"]["logit"],
        teaching=_correlation(logit["bayesian_teaching"]),
        cam=_correlation(logit["cam"]),
        **_differences(),
    )
    order = sorted(logit, key=lambda name: -logit[name]["logit"]["spearman"])
    rows = [
        f"| `{name}` | {logit[name]['logit']['spearman']:.2f} {_interval(logit[name]['logit']['interval_95'])}"
        f"{_fewer(logit[name]['logit']['scenes'], figures['scenes'])} "
        f"| {logit[name]['mean_share']:.2f} |"
        for name in order
    ]
    return [text, "| method | correlation | share |", "|---|---|---|", *rows, *_explain_omissions(figures)]


def _correlation(row: dict[str, Any]) -> str:
    return f"{row['logit']['spearman']:.2f} {_interval(row['logit']['interval_95'])}"


def _fewer(scenes: int, of: int) -> str:
    """Return the scenes in which a method found evidence, where it did not in all."""
    return f" in {scenes} scenes" if scenes < of else ""


def _explain_omissions(part: dict[str, Any]) -> list[str]:
    lines = [f"- `{name}` was left out: {why.rstrip('.')}." for name, why in part["left_out"].items()]
    others = [f"`{name}`" for name in METHODS if name not in part["methods"] and name not in part["left_out"]]
    return ["", *lines, *([f"- Not measured here: {', '.join(others)}."] if others else [])]


def _share(row: dict[str, Any]) -> str:
    return f"{row['share']:.2f} {_interval(row['interval_95'])}"


def _interval(ends: list[float]) -> str:
    return f"[{ends[0]:.2f}, {ends[1]:.2f}]"


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0") if value < 1 else "1"
