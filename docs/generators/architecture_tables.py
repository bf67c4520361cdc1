"""The table and the figure of the heatmap methods on twelve architectures."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from generators.markdown import escape_cell, format_table
from generators.plots import Series, draw_dots

Result = dict[str, Any]
MARKS = {"right": "✓", "refused": "refused", "warned": "warning", "wrong": "**wrong**"}
SHORT = 3
"""Names written out before ``and N more``."""
CHECKS = (
    (
        "place",
        "gradients, relevance, perturbations",
        "The network sees only the upper right quarter of the image. At least 99.9% of the squared heatmap is there; "
        "50% (chance: 25%) for methods that sample, less the variance of their stated noise, and for learned masks.",
    ),
    (
        "blind place",
        "excitation, LayerCAM, erasure",
        "What follows the last layer with places is blind to its upper right quarter. The heatmap is 0 there (at most "
        "0.01% of its maximum).",
    ),
    (
        "definition",
        "gradients, LRP-0 on networks of ReLUs, class activation maps, erasure",
        "The heatmap is that of the formula in the paper, written out in float64, at a layer and with axes named by "
        "hand (difference at most 0.1% of the maximum).",
    ),
    (
        "sum",
        "integrated gradients, DeepLIFT, Shapley values",
        "The heatmap sums to the difference of the logits, computed independently, up to 5%.",
    ),
    (
        "size",
        "integrated gradients, DeepLIFT, Shapley values",
        "The absolute values sum to at most 100 times that difference; a test holds it of trained transformers, too.",
    ),
    (
        "shift",
        "attention methods",
        "Without position embeddings, rolling the image down by three patches rolls the heatmap down by three.",
    ),
)
TEXT = "\n".join(
    [
        "Every heatmap method on twelve architectures of torchvision, timm and open_clip: is the heatmap right, "
        "refused in words, or given with a warning? One that fails its check without a warning is **wrong**. The "
        "networks are narrow and their weights random, images have 64 or 112 px; CLIP has its zero-shot head. What "
        "must hold is stated in `benchmarks/checks.py`:",
        "",
        *format_table(["check", "methods", "what must hold"], CHECKS),
        "",
        "The checks show that a method reads the right layer, axes and tokens of an architecture, follows the evidence "
        "through all of its operations, and gives nothing to pixels without influence. They do not show how a method "
        "divides the evidence within the seen quarter, that a heatmap is useful, or that networks with trained "
        "weights, other widths or other image sizes behave alike; [faithfulness](../docs/faithfulness.md) is measured "
        "on trained networks. The networks are steep: integrated gradients can need more steps than the default, and "
        "say so. Transformers refuse `guided_grad_cam` here because a network that sees only a quarter of its image "
        "keeps no places of the rest; without that they refuse it for want of ReLUs. "
        "The check of methods that sample or learn a mask was revised after a first pass, in which seven of their "
        "cells failed: it took the share of absolute values, to which the noise of all unseen pixels adds up, at "
        "settings whose masks were as wide as the seen quarter. It is now that of squares less the stated variance, at "
        "the methods' defaults; the limits are the first ones.",
    ]
)
"""What is measured, and what the checks prove and do not prove."""


def tabulate_architectures(result: Result) -> list[str]:
    """Tabulate the outcome of each method on each network, then the reasons of refusals and the warned heatmaps."""
    methods = list(next(iter(result.values())))
    rows = [(f"`{method}`", *(_mark(network[method]) for network in result.values())) for method in methods]
    cells = [cell for network in result.values() for cell in network.values()]
    counts = ", ".join(f"{sum(one['status'] == status for one in cells)} {status}" for status in MARKS)
    return [
        f"Of {len(cells)} cells: {counts}. ✓\\* is right, with a warning.",
        "",
        *format_table(["method", *result], rows),
        "",
        "Why heatmaps are refused, by the first sentence of the error:",
        "",
        *format_table(["reason", "methods", "networks"], _list_reasons(result)),
        "",
        "Heatmaps that fail a check or are empty:",
        "",
        *format_table(["network", "method", "failed check", "first warning"], _list_failures(result)),
    ]


def _mark(cell: dict[str, Any]) -> str:
    return MARKS[cell["status"]] + ("\\*" if cell["status"] == "right" and cell["warnings"] else "")


def _list_reasons(result: Result) -> list[tuple[str, str, str]]:
    reasons: dict[str, tuple[dict[str, None], dict[str, None]]] = defaultdict(lambda: ({}, {}))
    for network, cells in result.items():
        for method, cell in cells.items():
            if cell["status"] == "refused":
                reason = _generalise(cell["sentence"], network, method)
                reasons[reason][0][f"`{method}`"] = None
                reasons[reason][1][network] = None
    return [(escape_cell(reason), _join(methods), _join(networks)) for reason, (methods, networks) in reasons.items()]


def _generalise(sentence: str, network: str, method: str) -> str:
    """Return the first sentence, without the names of the network and the method."""
    first = re.split(r"(?<=\.) (?=[A-Z])", sentence)[0]
    first = re.sub(r" \((attention of|it has) [^)]*\)", "", first)
    return re.sub(rf"\b{method}\b", "METHOD", re.sub(rf"\b{network}\b", "NETWORK", first))


def _join(names: dict[str, None]) -> str:
    listed = list(names)
    rest = len(listed) - SHORT
    return ", ".join(listed if rest <= 1 else [*listed[:SHORT], f"and {rest} more"])


def _list_failures(result: Result) -> list[tuple[str, str, str, str]]:
    rows = []
    for network, cells in result.items():
        for method, cell in cells.items():
            if cell["status"] in ("warned", "wrong"):
                said = next(iter(cell.get("warnings", ())), cell.get("sentence", "none"))
                rows.append((network, f"`{method}`", ", ".join(cell.get("failed", ())), escape_cell(said)))
    return rows


def plot_architectures(result: Result) -> str:
    """Plot the number of methods by outcome, for each network."""
    series = {
        status: Series(
            {network: sum(one["status"] == status for one in cells.values()) for network, cells in result.items()}
        )
        for status in MARKS
    }
    return draw_dots(series, "heatmap methods")
