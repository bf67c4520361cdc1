"""Change one factor of a generated image, such as its context, and see the new prediction next to the old one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import streamlit as st

from dashboard.explore.figures import HeatmapDrawing, HeatmapStyle
from dashboard.explore.heatmap_jobs import HeatmapRequest
from dashboard.explore.heatmaps.cells import cell_of, target_of
from dashboard.explore.heatmaps.change import describe_change, draw_change
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.table import Cell
from dashboard.shared import cache, links
from dashboard.shared.cache import Gallery
from dashboard.shared.live import JobCollector, await_result, draw_live
from dashboard.shared.messages import escape_markdown
from data.types import ImageSet

BIND: Literal["query-params"] = "query-params"
NOTHING = "Nothing"
FACTOR_KEY = "factor"
OBJECT = "object"
"""The factor that is the true class: with another one, its pixels are others."""
LOOK = HeatmapStyle()


def show(seen: ClassifiedImage, images: str, method: str, parameters: dict[str, Any], seed: int) -> None:
    """Choose a factor and its value, and show the changed image, of a set that is generated."""
    gallery: Gallery | None = await_result(cache.start_gallery_job(seen.model, images))
    if gallery is None:
        return
    if not gallery.images.factors:
        st.caption("Only generated images, such as the scenes, can be drawn again with one change.")
        return
    st.subheader("What if the scene were different?", anchor=False)
    factors, i = gallery.images.factors, gallery.images.ids.index(seen.chosen.name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        links.check(FACTOR_KEY, [NOTHING, *map(str.capitalize, factors)], "factor")
        factor = st.selectbox(
            "Change", [NOTHING, *factors], key=FACTOR_KEY, bind=BIND, width=220, format_func=str.capitalize,
            help="The image is drawn again with this change alone: pose, light and everything else stay as they are.",
        )  # fmt: skip
        if factor == NOTHING:
            return
        own, key = get_own_value(gallery.images, factor, i), f"{FACTOR_KEY}.{factor}"
        links.check(key, factors[factor].values, factor)
        value = st.selectbox(factor.capitalize(), factors[factor].values, key=key, bind=BIND, width=220)
    if value == own:
        st.caption(f"This image has this {factor} already. Choose another one.")
        return
    _show_change(seen, intervene(seen, gallery.images, factor, value), (method, parameters, seed))


def get_own_value(images: ImageSet, factor: str, i: int) -> str | None:
    """Return the value of a factor that an image has of itself, if it is known."""
    known = images.factors[factor].known
    return None if known is None else known[i]


def intervene(seen: ClassifiedImage, images: ImageSet, factor: str, value: str) -> ClassifiedImage:
    """Return the same image of a set with one factor changed, as the same network sees it."""
    chosen, i = seen.chosen, images.ids.index(seen.chosen.name)
    changed = replace(
        chosen,
        image=images.factors[factor].do(i, value),
        name=f"{chosen.name} {factor} {value}",
        code=chosen.code.removesuffix(f".open({i})") + f".factors[{factor!r}].do({i}, {value!r})",
        truth=value if factor == OBJECT else chosen.truth,
        context=value if factor == "context" else chosen.context,
        mask=None if factor == OBJECT else chosen.mask,
    )
    return ClassifiedImage(seen.model, changed)


def _show_change(before: ClassifiedImage, after: ClassifiedImage, how: tuple[str, dict[str, Any], int]) -> None:
    names = before.classifier.names.short
    said = describe_change(before.probabilities, after.probabilities, names)
    st.markdown(escape_markdown(said + (f" It is {after.verdict}." if after.verdict else "")))
    images, bars = st.columns([2, 1], gap="large")
    bars.plotly_chart(
        draw_change(before.probabilities, after.probabilities, names),
        key="factor.change",
        config={"displayModeBar": False},
    )

    def collect(asking: JobCollector) -> list[Cell]:
        return [cell_of(asking, _ask(seen, *how), seen, measured=False) for seen in (before, after)]

    def draw(cells: list[Cell]) -> None:
        for seen, cell, when in zip((before, after), cells, ("Before", "After"), strict=True):
            _show_heatmap(seen, cell, when)

    with images:
        draw_live(collect, draw, "_factor")


def _ask(seen: ClassifiedImage, method: str, parameters: dict[str, Any], seed: int) -> HeatmapRequest:
    asked = target_of(seen, st.session_state["target"])
    target = seen.predicted_class if asked is None else asked
    return seen.request_heatmap(target, method, parameters, seed)


def _show_heatmap(seen: ClassifiedImage, cell: Cell, when: str) -> None:
    """Draw an image, and next to it its heatmap or why there is none yet."""
    left, right = st.columns(2, wrap=False)
    text = f"{when}: {seen.format_confidence(seen.predicted_class)}"
    left.image(seen.view.draw(seen.view.size(448)), caption=escape_markdown(text), width="stretch", alt=text)
    if cell.explanation is None:
        right.info(escape_markdown(cell.note))
        return
    drawn, words = HeatmapDrawing(seen.view, cell.explanation).draw(LOOK), f"Heatmap for {cell.request.class_name}"
    right.image(drawn, caption=escape_markdown(words), width="stretch", alt=f"{when}: {words}")
