"""A grid of the images of a set to choose from, in the chosen order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.explore.find.classes import show_class_table
from dashboard.explore.find.confusion import count_confusions, show_confusions
from dashboard.explore.find.filters import show_no_match
from dashboard.explore.find.orders import ORDERS, choose_order, rank_images
from dashboard.explore.find.selection import (
    MOST_SELECTED,
    offer_downloads,
    read_numbers,
    read_selection,
    select,
    toggle,
)
from dashboard.explore.find.stepping import show_steps
from dashboard.explore.find.thumbnails import choose_hover, make_address
from dashboard.explore.find.view import Search, find_images
from dashboard.shared import links
from dashboard.shared.cache import Gallery
from dashboard.shared.imagegrid import GridCell, show_grid
from dashboard.shared.keys import FIRST_IMAGES_KEY, IMAGE_KEY, IMAGES_KEY, digest
from study.building.categories import count_of

PER_PAGE = 20
FIRST = 3
"""Images of a grid until others are picked."""
IN_GRID, IN_PAIR = USES = ("Grid", "Compare models")
"""Views that a selection of images is opened in."""


def pick(search: Search, most: int = 1, near: DeltaGenerator | None = None) -> list[int]:
    """Return the indices of the chosen images, at most ``most``; the first of the order until others are picked.

    Those of one image may have buttons for its neighbours in the order, in the container ``near``.
    """
    indices = find_images(search)
    name, ranked = search.name, indices.images
    if not ranked:
        return []
    chosen = _read_choice(search, ranked, most)
    key = IMAGE_KEY if most == 1 else IMAGES_KEY
    if indices.ranking.is_final:  # else the first image of the order is still to come
        if most > 1 and not read_numbers(key, name):
            st.session_state[FIRST_IMAGES_KEY] = f"{name}/{','.join(map(str, chosen))}"
        st.query_params[key] = f"{name}/{','.join(map(str, chosen))}"

    def toggle_image(i: int) -> None:
        others = [k for k in chosen if k != i] if most > 1 else []
        numbers = others if i in chosen and others else [*others, i][-most:]
        st.session_state[key] = f"{name}/{','.join(map(str, numbers))}"

    if most == 1 and near is not None:
        with near:
            show_steps(ranked, chosen[0], toggle_image)
    _page(search.gallery, name, ranked, GridOptions(chosen, toggle_image, PER_PAGE, "3.2rem"))
    return chosen


def show_gallery(
    search: Search, picked: Callable[[int], None], act: Callable[[str, list[int]], None], controls: DeltaGenerator
) -> None:
    """Show the images of a set that fit the filters, page by page; a click is ``picked``, or selects.

    ``act`` is called with one of `USES` and the selected images; filters are drawn in ``controls``.
    """
    gallery, name = search.gallery, search.name
    row = controls.container(key="explore_filters")
    tools = st.container(horizontal=True, vertical_alignment="center")
    indices = find_images(search, row, tools)
    with row:
        method = choose_hover(search.model)
    with tools:
        selecting, selected = _show_selection(search, indices.images, act)
    show_class_table(search, row)
    with st.expander("Confusion matrix"):
        matrix = count_confusions(gallery, indices.filter.of_any_class.fits(gallery))
        chosen = (indices.filter.truth, indices.filter.predicted)
        show_confusions(matrix, chosen, any_known=bool(gallery.has_known_label.any()))
    if not indices.images:
        show_no_match()
        return
    st.caption(_describe_accuracy(gallery, indices.images))
    lines = partial(_describe_image, gallery, indices.ranking.notes)
    clicked = partial(toggle, name, selected) if selecting else picked
    address = make_address(gallery, search.model, name, method)
    options = GridOptions(selected, clicked, 3 * PER_PAGE, "8.5rem", lines, address)
    _page(gallery, name, indices.images, options)


def show_whole_set(
    gallery: Gallery, name: str, picked: Callable[[int], None], among: Collection[int] | None = None
) -> None:
    """Show the whole set, or those ``among`` it, page by page, with prediction and true class of each image."""
    chosen = range(len(gallery.images)) if among is None else set(among)
    ranked = [i for i in rank_images(gallery, choose_order(list(ORDERS))) if i in chosen]
    st.caption(_describe_accuracy(gallery, ranked))
    _page(gallery, name, ranked, GridOptions((), picked, 3 * PER_PAGE, "8.5rem", partial(_describe_image, gallery, {})))


def show_ranked(
    gallery: Gallery, name: str, ranked: Sequence[int], picked: Callable[[int], None], lines: Callable[[int], list[str]]
) -> None:
    """Show images in this order, each with its own lines."""
    _page(gallery, name, ranked, GridOptions((), picked, PER_PAGE, "10rem", lines))


def _describe_accuracy(gallery: Gallery, ranked: list[int]) -> str:
    right, known = (int(values[ranked].sum()) for values in (gallery.predictions.correct, gallery.has_known_label))
    verdict = (
        f"{right:,} of {count_of(known, 'prediction')} {'is' if known == 1 else 'are'} correct ({right / known:.1%})"
        if known
        else "no label is one of the AI's classes"
    )
    return f"{count_of(len(ranked), 'image')}; {verdict}." if ranked else ""


def _describe_image(gallery: Gallery, notes: Mapping[int, str], i: int) -> list[str]:
    truth, says, sure = gallery.describe_prediction(i)
    known = f"true class: {truth}" if gallery.has_known_label[i] else f"labelled {truth}"
    return [f"{says} {sure:.0%}", known, *([notes[i]] if i in notes else [])]


def _show_selection(
    search: Search, indices: list[int], act: Callable[[str, list[int]], None]
) -> tuple[bool, list[int]]:
    """Draw what can be done with several images; return whether a click selects, and the selected images."""
    name, selected = search.name, read_selection(search.name, len(search.gallery.images))
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        selecting = st.toggle("Select images", key="select", bind="query-params")
        if selecting:
            count = min(len(indices), MOST_SELECTED)
            st.button(
                f"Select {'the first ' if count < len(indices) else 'all '}{count:,}",
                disabled=not indices,
                on_click=select,
                args=(name, indices),
            )
        if selected:
            st.caption(f"{len(selected):,} selected", width="content")
            for use in USES:
                st.button(use, on_click=act, args=(use, selected))
            with st.popover("Download", icon=":material/download:"):
                offer_downloads(search.gallery, name, selected)
            st.button("Clear selection", on_click=select, args=(name, []), type="tertiary")
    return selecting, selected


def _read_choice(search: Search, ranked: Sequence[int], most: int) -> list[int]:
    """Read the chosen images from this session, or from its link; a single one has to be among those in order."""
    name, count = search.name, len(search.gallery.images)

    def read(key: str) -> list[int]:
        numbers = read_numbers(key, name)
        fitting = [n for n in numbers if n.isdecimal() and int(n) < count]
        for number in set(numbers) - set(fitting):
            links.note(
                key, f"The link names image {number} of {name}, which has images 0 to {count - 1}. {links.INSTEAD}"
            )
        return list(dict.fromkeys(map(int, fitting)))[:most]

    one = [i for i in read(IMAGE_KEY) if i in set(ranked)] or [ranked[0]]
    if most == 1:
        return one[:1]
    return read(IMAGES_KEY) or list(dict.fromkeys([*one[:1], *ranked]))[:FIRST]


@dataclass(frozen=True)
class GridOptions:
    """How images are offered: which are marked, what a click does, how many to a page, and their minimum width.

    ``heatmaps`` is the address of their heatmaps, to which the number of an image is appended, or empty.
    """

    chosen: Sequence[int]
    picked: Callable[[int], None]
    per_page: int
    side: str
    lines: Callable[[int], list[str]] | None = None
    heatmaps: str = ""


def _page(gallery: Gallery, name: str, ranked: Sequence[int], how: GridOptions) -> None:
    pages = -(-len(ranked) // how.per_page)
    shown = st.container()
    key = f"images_{name}_{how.per_page}_{digest(str(ranked))[:16]}"  # another choice begins at its first page
    page = st.pagination(pages, max_visible_pages=5, key=key, width="stretch") if pages > 1 else 1
    with shown:
        _grid(gallery, ranked[(page - 1) * how.per_page : page * how.per_page], how)


def _grid(gallery: Gallery, indices: Sequence[int], how: GridOptions) -> None:
    def make_cell(i: int) -> GridCell:
        truth, says, _ = gallery.describe_prediction(i)
        wrong = bool(gallery.has_known_label[i] and not gallery.predictions.correct[i])
        verdict = (
            f"wrong, true class: {truth}" if wrong else "right" if gallery.has_known_label[i] else f"labelled {truth}"
        )
        lines = how.lines(i) if how.lines else []
        return GridCell(i, f"The AI predicts {says}: {verdict}", lines, wrong, i in how.chosen)

    show_grid(
        f"explore_grid_{how.per_page}",
        gallery.images,
        [make_cell(i) for i in indices],
        how.picked,
        pixels=192 if how.lines else 96,
        width=how.side,
        heatmaps=how.heatmaps,
    )
