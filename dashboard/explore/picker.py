"""A grid of the images of a set to choose from, in the chosen order."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from dashboard.explore.figures import make_thumbnail
from dashboard.shared import links
from dashboard.shared.cache import Gallery
from dashboard.shared.keys import IMAGE_KEY, IMAGES_KEY, digest
from study.network.predictions import Predictions

PER_PAGE = 20
FIRST = 3
"""Images of a grid until others are picked."""
ORDERS: dict[str, Callable[[Predictions], tuple[Any, ...]]] = {
    "Confident errors first": lambda a: (-a.probability, a.correct),
    "Largest error first": lambda a: (np.nan_to_num(a.truth_probability, nan=1.0),),
    "Most uncertain first": lambda a: (-a.entropy,),
    "Most confident first": lambda a: (-a.probability,),
    "Least confident first": lambda a: (a.probability,),
    "Confident and correct first": lambda a: (-a.probability, ~a.correct),
}
"""By name, keys to sort by, the last one first. The error is minus the log probability of the true class."""

_CSS = """
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(var(--side), 1fr)); gap: 6px; padding: 3px; }
button { all: unset; position: relative; cursor: pointer; border-radius: 8px; overflow: hidden; display: flex;
  flex-direction: column; outline: 1px solid var(--st-border-color); }
button:hover { outline: 2px solid var(--st-text-color); }
button:focus-visible, button[aria-pressed=true] { outline: 3px solid var(--st-primary-color); }
figure { all: unset; position: relative; display: block; aspect-ratio: 1; width: 100%; }
img { display: block; width: 100%; height: 100%; object-fit: cover; }
i { position: absolute; inset: auto 0 0 0; height: 4px; background: #e66101; }
span { font: 0.75rem/1.35 var(--st-font); color: var(--st-text-color); padding: 0 6px; overflow-wrap: anywhere; }
figure + span { padding-top: 4px; font-weight: 600; }
span:last-child { padding-bottom: 6px; }
"""
_JS = """
export default function ({ data, parentElement, setTriggerValue }) {
  const grid = parentElement.querySelector(".grid");
  grid.style.setProperty("--side", data.side);
  grid.replaceChildren(...data.cells.map(({ index, source, says, wrong, chosen, lines }) => {
    const button = document.createElement("button");
    const figure = document.createElement("figure");
    const image = document.createElement("img");
    button.setAttribute("aria-pressed", chosen);
    button.title = says;
    image.alt = says;
    image.src = source;
    figure.append(image);
    if (wrong) figure.append(document.createElement("i"));
    button.append(figure);
    for (const line of lines) {
      const text = document.createElement("span");
      text.textContent = line;
      button.append(text);
    }
    button.onclick = () => setTriggerValue("picked", index);
    return button;
  }));
}
"""


def pick(gallery: Gallery, name: str, most: int = 1) -> list[int]:
    """Return the indices of the chosen images, at most ``most``; the first of the order until others are picked."""
    ranked = _choose_order(gallery)
    chosen = _read_choice(name, ranked, most)
    key = IMAGE_KEY if most == 1 else IMAGES_KEY
    st.query_params[key] = f"{name}/{','.join(map(str, chosen))}"

    def toggle_image(i: int) -> None:
        others = [k for k in chosen if k != i] if most > 1 else []
        numbers = others if i in chosen and others else [*others, i][-most:]
        st.session_state[key] = f"{name}/{','.join(map(str, numbers))}"

    _page(gallery, name, ranked, GridOptions(chosen, toggle_image, PER_PAGE, "3.2rem"))
    return chosen


def show_whole_set(
    gallery: Gallery, name: str, picked: Callable[[int], None], among: Collection[int] | None = None
) -> None:
    """Show the whole set, or those ``among`` it, page by page, with prediction and true class of each image."""
    chosen = range(len(gallery.images)) if among is None else set(among)
    ranked = [i for i in _choose_order(gallery) if i in chosen]
    right, known = (int(values[ranked].sum()) for values in (gallery.predictions.correct, gallery.has_known_label))
    verdict = (
        f"the AI is right about {right:,} of them ({right / known:.1%})"
        if known
        else "no label is one of the AI's classes"
    )
    st.caption(f"{len(ranked):,} images; {verdict}.")

    def lines(i: int) -> list[str]:
        truth, says, sure = gallery.describe_prediction(i)
        return [f"{says} {sure:.0%}", f"true class: {truth}" if gallery.has_known_label[i] else f"labelled {truth}"]

    _page(gallery, name, ranked, GridOptions((), picked, 3 * PER_PAGE, "8.5rem", lines))


def show_ranked(
    gallery: Gallery, name: str, ranked: Sequence[int], picked: Callable[[int], None], lines: Callable[[int], list[str]]
) -> None:
    """Show images in this order, each with its own lines."""
    _page(gallery, name, ranked, GridOptions((), picked, PER_PAGE, "10rem", lines))


def rank_images(gallery: Gallery, order: str) -> list[int]:
    """Return the indices of the images in an order of `ORDERS`."""
    return [int(i) for i in np.lexsort(ORDERS[order](gallery.predictions))]


def _choose_order(gallery: Gallery) -> list[int]:
    order = st.selectbox(
        "Order", list(ORDERS), key="order", bind="query-params", label_visibility="collapsed", width=320
    )
    return rank_images(gallery, order)


def _read_choice(name: str, ranked: Sequence[int], most: int) -> list[int]:
    """Read the chosen images from this session, or from its link."""

    def read_numbers(key: str) -> list[int]:
        text = st.session_state.get(key) or st.query_params.get(key, "")
        of, _, numbers = text.rpartition("/")
        if of != name:
            return []
        fitting = [n for n in numbers.split(",") if n.isdecimal() and int(n) < len(ranked)]
        for number in set(numbers.split(",")) - set(fitting):
            links.note(key, f"The link names image {number} of {name}, which has images 0 to {len(ranked) - 1}.")
        return list(dict.fromkeys(map(int, fitting)))[:most]

    one = read_numbers(IMAGE_KEY) or [ranked[0]]
    if most == 1:
        return one[:1]
    return read_numbers(IMAGES_KEY) or list(dict.fromkeys([*one[:1], *ranked]))[:FIRST]


@dataclass(frozen=True)
class GridOptions:
    """How images are offered: which are marked, what a click does, how many to a page, and their minimum width."""

    chosen: Sequence[int]
    picked: Callable[[int], None]
    per_page: int
    side: str
    lines: Callable[[int], list[str]] | None = None


def _page(gallery: Gallery, name: str, ranked: Sequence[int], how: GridOptions) -> None:
    pages = -(-len(ranked) // how.per_page)
    shown = st.container()
    key = f"pictures_{name}_{how.per_page}_{digest(str(ranked))[:16]}"  # another choice begins at its first page
    page = st.pagination(pages, max_visible_pages=5, key=key, width="stretch") if pages > 1 else 1
    with shown:
        _grid(gallery, ranked[(page - 1) * how.per_page : page * how.per_page], how)


@st.cache_data(max_entries=2000, show_spinner=False)
def _thumbnail(key: str, _gallery: Gallery, _index: int, _side: int) -> str:  # noqa: ARG001
    return "data:image/webp;base64," + base64.b64encode(make_thumbnail(_gallery.images.open(_index), _side)).decode()


def _grid(gallery: Gallery, indices: Sequence[int], how: GridOptions) -> None:
    side = 192 if how.lines else 96

    def cell(i: int) -> dict[str, Any]:
        truth, says, _ = gallery.describe_prediction(i)
        wrong = bool(gallery.has_known_label[i] and not gallery.predictions.correct[i])
        verdict = (
            f"wrong, true class: {truth}" if wrong else "right" if gallery.has_known_label[i] else f"labelled {truth}"
        )
        return {
            "index": i,
            "source": _thumbnail(f"{gallery.images.digest}/{i}/{side}", gallery, i, side),
            "says": f"The AI predicts {says}: {verdict}",
            "wrong": wrong,
            "chosen": i in how.chosen,
            "lines": how.lines(i) if how.lines else [],
        }

    key = f"explore_grid_{how.per_page}"
    component = st.components.v2.component("foretell_picker", html='<div class="grid"></div>', css=_CSS, js=_JS)
    component(
        key=key,
        data={"side": how.side, "cells": [cell(i) for i in indices]},
        on_picked_change=lambda: how.picked(st.session_state[key].picked),
    )
