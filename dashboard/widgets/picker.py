"""A small grid of pictures to choose one from."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from dashboard.cache import Gallery
from dashboard.figures import thumbnail
from dashboard.keys import PICTURE

ORDERS = ("Confident errors first", "Confident and right first", "Least sure first")
PER_PAGE = 20

_CSS = """
.grid { display: grid; grid-template-columns: repeat(5, 1fr); gap: 6px; padding: 3px; }
button { all: unset; position: relative; cursor: pointer; border-radius: 8px; aspect-ratio: 1; overflow: hidden;
  outline: 1px solid var(--st-border-color); }
button:hover { outline: 2px solid var(--st-text-color); }
button:focus-visible, button[aria-pressed=true] { outline: 3px solid var(--st-primary-color); }
img { display: block; width: 100%; height: 100%; object-fit: cover; }
i { position: absolute; inset: auto 0 0 0; height: 4px; background: #e66101; }
"""
_JS = """
export default function ({ data, parentElement, setTriggerValue }) {
  const grid = parentElement.querySelector(".grid");
  grid.replaceChildren(...data.map(({ index, source, says, wrong, chosen }) => {
    const button = document.createElement("button");
    const image = document.createElement("img");
    button.setAttribute("aria-pressed", chosen);
    button.title = says;
    image.alt = says;
    image.src = source;
    button.append(image);
    if (wrong) button.append(document.createElement("i"));
    button.onclick = () => setTriggerValue("picked", index);
    return button;
  }));
}
"""


def pick(gallery: Gallery, split: str) -> int:
    """Index of the chosen picture; the first in the chosen order until one is picked."""
    order = st.selectbox("Order", ORDERS, key="order", bind="query-params", label_visibility="collapsed")
    ranked = ranking(gallery, order)
    pages = -(-len(ranked) // PER_PAGE)
    chosen = _chosen(split, ranked)
    shown = st.container()
    page = st.pagination(pages, max_visible_pages=5, key=f"pictures_{split}_{ORDERS.index(order)}", width="stretch")
    with shown:
        _grid(gallery, split, ranked[(page - 1) * PER_PAGE : page * PER_PAGE], chosen)
    return chosen


def ranking(gallery: Gallery, order: str) -> list[int]:
    """Indices of the pictures in an order of `ORDERS`."""
    answers = gallery.answers
    if order == ORDERS[2]:
        return [int(i) for i in np.argsort(answers.probability, kind="stable")]
    last = answers.correct if order == ORDERS[0] else ~answers.correct
    return [int(i) for i in np.lexsort((-answers.probability, last))]


def _chosen(split: str, ranked: Sequence[int]) -> int:
    """From this session, or from the link it came by."""
    text = st.session_state.get(PICTURE) or f"{split}/{st.query_params.get('picture', '')}"
    of, _, number = text.partition("/")
    known = of == split and number.isdecimal() and int(number) < len(ranked)
    return int(number) if known else ranked[0]


@st.cache_data(max_entries=1000, show_spinner=False)
def _thumbnail(key: str, _gallery: Gallery, _index: int) -> str:  # noqa: ARG001
    return "data:image/webp;base64," + base64.b64encode(thumbnail(_gallery.images.open(_index))).decode()


def _grid(gallery: Gallery, split: str, indices: Sequence[int], chosen: int) -> None:
    answers, images = gallery.answers, gallery.images

    def cell(i: int) -> dict[str, Any]:
        truth, says = (images.categories[k] for k in (images.labels[i], answers.predicted[i]))
        verdict = "right" if answers.correct[i] else f"wrong, truth: {truth}"
        return {
            "index": i,
            "source": _thumbnail(f"{images.digest}/{i}", gallery, i),
            "says": f"The AI says {says}, {answers.probability[i]:.0%}: {verdict}",
            "wrong": not answers.correct[i],
            "chosen": i == chosen,
        }

    key = "explore_grid"

    def picked() -> None:
        st.session_state[PICTURE] = f"{split}/{st.session_state[key].picked}"

    component = st.components.v2.component("foretell_picker", html='<div class="grid"></div>', css=_CSS, js=_JS)
    component(key=key, data=[cell(i) for i in indices], on_picked_change=picked)
