"""Orders of images: by what a network predicts, or by where methods or networks disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from core.names import format_name
from dashboard.explore.find.jobs import make_method_task, make_network_task
from dashboard.shared import cache, links
from dashboard.shared.cache import Gallery
from dashboard.shared.live import get_result
from dashboard.shared.messages import escape_markdown
from inquiry.debugging.disagreement import MOST_IMAGES, QUICK_METHODS
from study.network.predictions import Predictions

ORDERS: dict[str, Callable[[Predictions], tuple[Any, ...]]] = {
    "Confident errors first": lambda a: (-a.probability, a.correct),
    "Largest error first": lambda a: (np.nan_to_num(a.truth_probability, nan=1.0),),
    "Most uncertain first": lambda a: (-a.entropy,),
    "Most confident first": lambda a: (-a.probability,),
    "Least confident first": lambda a: (a.probability,),
    "Confident and correct first": lambda a: (-a.probability, ~a.correct),
}
"""By name, keys to sort by, the last one first. The error is minus the log probability of the true class."""
FIRST_ORDER = "Confident errors first"
METHODS_DISAGREE, NETWORKS_DISAGREE = DISAGREEMENTS = ("Methods disagree most", "Networks disagree most")


@dataclass(frozen=True)
class Ranking:
    """Images in an order, and what is written under each; while ``is_final`` is False the order is still to come."""

    images: list[int]
    notes: dict[int, str] = field(default_factory=dict)
    is_final: bool = True


def rank_images(gallery: Gallery, order: str) -> list[int]:
    """Return the indices of the images in an order of `ORDERS`."""
    return [int(i) for i in np.lexsort(ORDERS[order](gallery.predictions))]


def choose_order(offered: Sequence[str], key: str = "order", changed: Callable[[], None] | None = None) -> str:
    """Choose one of the orders that are offered; the first is taken until then. Another choice calls ``changed``."""
    links.check(key, offered, "order")
    return st.selectbox(
        "Order", offered, key=key, bind="query-params", label_visibility="collapsed", width=320, on_change=changed
    )


def find_compared(fitting: Sequence[int]) -> list[int]:
    """Return the images on which methods are compared: the first of those that fit, in `FIRST_ORDER`."""
    return list(fitting)[:MOST_IMAGES]


def rank_by_methods(gallery: Gallery, model: str, fitting: Sequence[int]) -> Ranking:
    """Rank images by the mean rank correlation of quick methods' heatmaps, smallest first; it may take long."""
    rows = find_compared(fitting)
    names = ", ".join(map(format_name, QUICK_METHODS))
    st.caption(
        f"Mean rank correlation of every two heatmaps by {names}, each for the predicted class; the smallest first. "
        "1: the same pixels matter most; 0: nothing in common. "
        + (f"Compared are the first {len(rows):,} of {len(fitting):,} images." if len(rows) < len(fitting) else "")
    )
    comparison = get_result(make_method_task(cache.load_classifier(model), gallery.images, rows), "_methods")
    if comparison is None:
        return Ranking(rows, is_final=False)
    for method, reason in comparison.refused.items():
        st.caption(escape_markdown(f"{format_name(method)} does not apply to this network: {reason}"))
    ranked = sorted(rows, key=lambda i: comparison.correlations[i])
    return Ranking(ranked, {i: f"agreement {comparison.correlations[i]:.2f}" for i in ranked})


def rank_by_networks(gallery: Gallery, model: str, others: Sequence[str], fitting: Sequence[int]) -> Ranking:
    """Rank images by the divergence of the predictions of two networks, largest first."""
    other = others[0]
    if len(others) > 1:
        links.check("other", others, "network to compare with")
        other = st.selectbox("Compared with", others, key="other", bind="query-params")
    first, second = cache.load_classifier(model), cache.load_classifier(other)
    comparison = get_result(make_network_task(first, second, gallery.images), "_networks")
    if comparison is None:
        return Ranking(list(fitting), is_final=False)
    st.caption(
        escape_markdown(
            f"Jensen–Shannon divergence of the predictions of {cache.name_model(model)} and {cache.name_model(other)} "
            "over their common classes, in bits; the largest first. 0: the same prediction; 1: no overlap."
        )
    )
    ranked = sorted(fitting, key=lambda i: -comparison[i])
    return Ranking(ranked, {i: f"divergence {comparison[i]:.2f}" for i in ranked})
