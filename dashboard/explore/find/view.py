"""Choose which images of a set are offered, and in what order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import ForetellError
from dashboard.explore.find import filters, orders
from dashboard.explore.find.filters import ImageFilter
from dashboard.explore.find.jobs import make_method_task
from dashboard.explore.find.orders import DISAGREEMENTS, METHODS_DISAGREE, NETWORKS_DISAGREE, ORDERS, Ranking
from dashboard.explore.find.selection import forget_shown_images, read_selection
from dashboard.shared import cache
from dashboard.shared.cache import Gallery
from dashboard.shared.live import begin, format_duration
from study.workspace.notes import read_notes
from study.workspace.workspace import home

_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Search:
    """Where images are looked for: a classified set with the names of the network and the set.

    ``others`` are the networks to compare with; the order ``first_order`` is taken at first.
    """

    gallery: Gallery
    model: str
    name: str
    others: tuple[str, ...] = ()
    first_order: str = orders.FIRST_ORDER
    order_key: str = "order"


@dataclass(frozen=True)
class FoundImages:
    """The images that fit the filters, in order, of how many; ``filter`` is what they fit."""

    ranking: Ranking
    total: int
    filter: ImageFilter

    @property
    def images(self) -> list[int]:
        """Return the images in order."""
        return self.ranking.images


def find_images(search: Search, row: DeltaGenerator | None = None, tools: DeltaGenerator | None = None) -> FoundImages:
    """Draw orders and filters; return the images that fit.

    The filters are drawn in a ``row`` apart from the order, which is drawn in ``tools``; without a row they are folded
    away below the order, and another order begins with its own first image.
    """
    gallery, selected = search.gallery, read_selection(search.name, len(search.gallery.images))
    with tools or st.container(horizontal=True, vertical_alignment="bottom"):
        order = _choose_order(search, forget_shown_images if row is None else None)
        shortcut = st.container(width="content") if row else None
    with row or st.expander("Filter"):
        chosen = filters.choose_filter(gallery, frozenset(selected), _find_noted(search))
    fit = chosen.fits(gallery)
    fitting = [i for i in orders.rank_images(gallery, order if order in ORDERS else orders.FIRST_ORDER) if fit[i]]
    if shortcut is not None and fitting and order != METHODS_DISAGREE:
        with shortcut:
            _offer_method_order(search, fitting)
    if fitting:
        _say_count(chosen, len(fitting), len(gallery.images))
    ranking = _rank(search, order, fitting) if fitting else Ranking([])
    return FoundImages(ranking, len(gallery.images), chosen)


def _find_noted(search: Search) -> frozenset[int]:
    """Find the images of a set that have a note."""
    with suppress(ForetellError):  # a damaged file of notes is reported where notes are shown
        noted = read_notes(home(), search.name)
        return frozenset(i for i, name in enumerate(search.gallery.images.ids) if name in noted) if noted else _NONE
    return _NONE


def _choose_order(search: Search, changed: Callable[[], None] | None) -> str:
    offered = [*ORDERS, *(name for name in DISAGREEMENTS if name != NETWORKS_DISAGREE or search.others)]
    offered.remove(search.first_order)
    return orders.choose_order([search.first_order, *offered], search.order_key, changed)


def _rank(search: Search, order: str, fitting: list[int]) -> Ranking:
    if order == METHODS_DISAGREE:
        return orders.rank_by_methods(search.gallery, search.model, fitting)
    if order == NETWORKS_DISAGREE:
        return orders.rank_by_networks(search.gallery, search.model, search.others, fitting)
    return Ranking(fitting)


def _offer_method_order(search: Search, fitting: list[int]) -> None:
    """Draw the button that orders by disagreement of methods; it says how long that takes, so it also starts it."""
    known = set(fitting)
    by_error = [i for i in orders.rank_images(search.gallery, orders.FIRST_ORDER) if i in known]
    rows = orders.find_compared(by_error)
    task = make_method_task(cache.load_classifier(search.model), search.gallery.images, rows)
    seconds = task.seconds

    def start() -> None:
        st.session_state[search.order_key] = METHODS_DISAGREE
        begin([task.key])

    about = f" ({format_duration(seconds)})" if seconds else ""
    st.button(f"Where methods disagree{about}", icon=":material/difference:", on_click=start)


def _say_count(chosen: ImageFilter, count: int, total: int) -> None:
    if not chosen.is_active:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{count:,} of {total:,} images fit the filters.", width="content")
        st.button("Clear filters", on_click=filters.clear_filters, type="tertiary", icon=":material/filter_alt_off:")
