"""Many heatmaps on one sheet: methods by images, by classes of one image, or by two classifiers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.drawing.sheet import PIXELS, render_png
from core.names import format_name
from dashboard.explore import figures
from dashboard.explore.heatmap_jobs import HeatmapRequest
from dashboard.explore.heatmaps import appearance, downloads
from dashboard.explore.heatmaps.agreement import show_agreement
from dashboard.explore.heatmaps.cells import PREDICTION, cell_of, target_box, target_of
from dashboard.explore.heatmaps.closeup import show_closeup
from dashboard.explore.heatmaps.difference import show_difference
from dashboard.explore.heatmaps.predictions import TOP_HEADING, show_top_predictions
from dashboard.explore.heatmaps.sheet import Palette, draw_sheet, draw_stacked_sheet
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.table import Cell, HeatmapColumn, HeatmapTable, Scaling
from dashboard.shared import cache, links
from dashboard.shared.keys import digest
from dashboard.shared.live import JobCollector, draw_live
from dashboard.shared.messages import escape_markdown
from study.analysis.words.headings import format_headings

MOST_COLUMNS = 8
MOST_CELLS = 250
"""Heatmaps of a grid: finished ones are kept in memory."""
MOST_STACKED = 24
"""Heatmaps of a grid that are also drawn below each other, for a phone: its sheet is drawn in addition."""
MOST_NAMED = 8
"""Methods that the title of a sheet names."""
CLIP = 2.0
"""Percentage of pixels in full colour: gradients and relevance have few extreme values that hide all others."""
CLOSER_HELP = "One slider over all cells from the image to its heatmap; zoom and movement are the same in every cell."
RANK_LABELS = ("Prediction", "2nd prediction", "3rd prediction", "4th prediction", "5th prediction")
TRUTH = "True class"
CLASSIFIERS = "classifiers"
MethodSettings = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class SheetOptions:
    """How the heatmaps of a grid are drawn, whether they are measured, and whether each is seen ``closer``."""

    look: figures.HeatmapStyle
    scaling: Scaling
    measured: bool
    closer: bool


def show_by_image(seen: Sequence[ClassifiedImage], methods: MethodSettings, seed: int) -> None:
    """Show each image as a column: its predicted class, or one class for all."""
    if not seen:
        return
    with _controls():
        name = target_box(seen[0].classifier)
        options = _choose_options(any(s.chosen.mask is not None for s in seen))

    def column(s: ClassifiedImage) -> HeatmapColumn:
        target = target_of(s, name)
        explained = "" if target in (None, s.predicted_class) else f"explained: {s.format_confidence(target)}"
        lines = (f"predicts {s.format_confidence(s.predicted_class)}", s.verdict, explained)
        return HeatmapColumn(s, target, tuple(filter(None, lines)))

    _show([column(s) for s in seen], methods, seed, options, "images")


def show_by_class(seen: ClassifiedImage, methods: MethodSettings, seed: int) -> None:
    """Show each class of one image as a column."""
    names = seen.classifier.names.short
    chosen = _choose_classes(seen)
    with _controls():
        options = _choose_options(seen.chosen.mask is not None)
    columns: dict[int, HeatmapColumn] = {}
    for name in chosen:
        k = _find_class(seen, name)
        if k is not None and k not in columns:
            columns[k] = HeatmapColumn(seen, k, (seen.format_confidence(k), name if name not in names else ""))
    if columns:
        _show(list(columns.values()), methods, seed, options, "classes")


def _choose_classes(seen: ClassifiedImage) -> list[str]:
    """Choose classes of one image by name, by their place among its predictions, or as the true one."""
    names = seen.classifier.names.short
    known = [TRUTH] if seen.truth is not None else []
    links.update_classes("classes", seen.classifier.names, [*RANK_LABELS, TRUTH], several=True)
    return st.multiselect(
        "Classes",
        [*RANK_LABELS[: len(names)], *known, *names],
        [*RANK_LABELS[: min(3, len(names))], *known],
        key="classes",
        bind="query-params",
        max_selections=MOST_COLUMNS,
        wrap=True,
    )


def _find_class(seen: ClassifiedImage, name: str) -> int | None:
    """Return the class of a name of `_choose_classes`; None if the true class is not known."""
    if name == TRUTH:
        return seen.truth
    if name in RANK_LABELS:
        return seen.ranked_classes[RANK_LABELS.index(name)]
    return seen.classifier.names.short.index(name)


def show_by_classifier(pair: Sequence[ClassifiedImage], methods: MethodSettings, seed: int) -> None:
    """Show the same image and method for two classifiers."""
    predicted = list(dict.fromkeys(s.classifier.names.short[s.predicted_class] for s in pair))
    with _controls():
        name = target_box(pair[0].classifier, predicted)
        # Two networks have logits of different scales.
        options = _choose_options(pair[0].chosen.mask is not None, "Own")
    if name == PREDICTION and len(predicted) > 1:
        _offer_same_class(pair, predicted)

    def column(s: ClassifiedImage) -> HeatmapColumn:
        target = target_of(s, name)
        explained = "" if target is None or name == PREDICTION else f"explained: {s.format_confidence(target)}"
        lines = (cache.name_model(s.model), f"predicts {s.format_confidence(s.predicted_class)}", s.verdict, explained)
        return HeatmapColumn(s, target, tuple(filter(None, lines)))

    _show([column(s) for s in pair], methods, seed, options, CLASSIFIERS)


def _offer_same_class(pair: Sequence[ClassifiedImage], predicted: Sequence[str]) -> None:
    """Say that each network explains another class, and offer each class that both know."""
    known = [name for name in predicted if all(name in s.classifier.names.short for s in pair)]
    with st.container(horizontal=True, vertical_alignment="center", key="explore_same"):
        st.caption(
            f"The heatmaps explain different classes: {escape_markdown(' and '.join(predicted))}.", width="content"
        )
        for name in known:
            st.button(
                f"Explain {escape_markdown(name)} for both",
                key=f"explain_{name}",
                on_click=st.session_state.update,
                args=({"target": name},),
            )


def _controls() -> Any:
    return st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="explore_look")


def _choose_options(object_known: bool, default: Scaling = "Shared") -> SheetOptions:
    """Draw the controls of appearance."""
    return SheetOptions(
        appearance.choose_style(object_known=object_known, clip=CLIP, clip_key="grid.clip"),
        appearance.choose_scaling(default, "scale" if default == "Shared" else "pair.scale"),
        appearance.choose_faithfulness(),
        st.toggle("Slider and zoom", key="closer", bind="query-params", help=CLOSER_HELP),
    )


def _show(columns: list[HeatmapColumn], methods: MethodSettings, seed: int, options: SheetOptions, kind: str) -> None:
    """Draw the heatmaps of all methods and columns as far as they are computed."""
    if not methods:
        st.info("Choose a method.")
        return
    if (count := len(columns) * len(methods)) > MOST_CELLS:
        st.info(f"{count} heatmaps are more than {MOST_CELLS}. Choose fewer images or methods.")
        return

    def collect(asking: JobCollector) -> HeatmapTable:
        requests = {
            method: [one.image.request_heatmap(one.target or 0, method, given, seed) for one in columns]
            for method, given in methods.items()
        }
        asking.hold_together(request.task for row in requests.values() for request in row)
        rows = {method: _collect_row(asking, columns, row, options) for method, row in requests.items()}
        title, is_pair = title_of(columns, methods), kind == CLASSIFIERS
        return HeatmapTable(title, tuple(columns), rows, options.scaling, options.look, is_pair)

    def draw(table: HeatmapTable) -> None:
        _draw(table, f"{'-'.join(_networks(columns))}-{kind}", closer=options.closer)
        if table.is_pair:
            _show_predictions(columns)

    with st.container(key="explore_heatmap"):  # which a phone shows before its controls
        draw_live(collect, draw)


def _collect_row(
    asking: JobCollector, columns: Sequence[HeatmapColumn], requests: Sequence[HeatmapRequest], options: SheetOptions
) -> tuple[Cell, ...]:
    return tuple(
        Cell(request, note=f"{column.image.classifier.name} has no such class.")
        if column.target is None
        else cell_of(asking, request, column.image, measured=options.measured)
        for column, request in zip(columns, requests, strict=True)
    )


def _show_predictions(columns: Sequence[HeatmapColumn]) -> None:
    """Draw the likeliest classes of each network, side by side."""
    st.header(TOP_HEADING, anchor=False)
    for place, column in zip(st.columns(len(columns), gap="large"), columns, strict=True):
        with place:
            st.subheader(escape_markdown(cache.name_model(column.image.model)), anchor=False)
            show_top_predictions(column.image, column.target)


def title_of(columns: Sequence[HeatmapColumn], methods: Iterable[str]) -> str:
    """Name every network of a sheet, and its methods unless they are many: each heatmap has its name."""
    named = list(map(format_name, methods))
    said = ", ".join(named) if len(named) <= MOST_NAMED else f"{len(named)} methods"
    return f"{' and '.join(_networks(columns))}: {said}"


def _networks(columns: Sequence[HeatmapColumn]) -> list[str]:
    return list(dict.fromkeys(column.image.classifier.name for column in columns))


def _draw(everything: HeatmapTable, stem: str, *, closer: bool) -> None:
    refusals = everything.refusals
    shown = everything.leave_out(refusals)
    if shown.rows:
        _draw_heatmaps(shown, stem, closer=closer)
    if refusals:
        st.caption(f"Without a heatmap ({len(refusals)}):")
        reasons = (f"{format_name(name)}: {why}" for name, why in refusals.items())
        st.markdown("\n".join(f"- {escape_markdown(reason)}" for reason in reasons))
    with st.expander("Numbers: certificates and measures"):
        table = pd.DataFrame([_numbers(column, cell) for column, cell in everything.cells])
        named = table.assign(method=table["method"].map(format_name))
        st.dataframe(named, hide_index=True, placeholder="–", column_config=dict(format_headings(table)))
        for column, cell in shown.cells:
            for warning in cell.certificate.warnings if cell.certificate else ():
                st.warning(escape_markdown(f"{_name(column, cell)}: {warning}"))


def _draw_heatmaps(shown: HeatmapTable, stem: str, *, closer: bool) -> None:
    if closer:
        show_closeup(shown, _digest(shown))
    else:
        _draw_sheet(shown)
    if shown.is_pair:
        show_difference(shown)
    downloads.show_heatmap_downloads(shown, stem)
    show_agreement(shown, stem)


def _draw_sheet(shown: HeatmapTable) -> None:
    told = "; ".join(f"{_name(column, c)}{'' if c.explanation else f': {c.note}'}" for column, c in shown.cells)
    # As PNG: the small words of the sheet do not survive JPEG.
    palette = appearance.find_palette()
    png, width = _render_sheet(_digest(shown), shown, palette, stacked=False)
    is_stacked = len(shown.columns) > 1 and len(shown.cells) <= MOST_STACKED
    if len(shown.columns) > 1 and not is_stacked:
        with st.container(key="explore_sideways"):  # on a phone alone
            st.caption(f"{len(shown.columns)} columns: scroll sideways.")
    with st.container(key=f"explore_sheet_{width}"):  # which scrolls: a unit is a pixel or more
        st.image(png, width=PIXELS * width, alt=f"Heatmaps: {told}", output_format="PNG")
    if is_stacked:
        png, width = _render_sheet(_digest(shown), shown, palette, stacked=True)
        with st.container(key="explore_stacked"):  # on a phone, instead of the wide one
            st.image(png, width=PIXELS * width, alt=f"Heatmaps: {told}", output_format="PNG")


def _name(column: HeatmapColumn, cell: Cell) -> str:
    return f"{format_name(cell.request.method)}, {column.lines[0]}"


@st.cache_data(max_entries=24, show_spinner=False)
def _render_sheet(key: str, _shown: HeatmapTable, palette: Palette, *, stacked: bool) -> tuple[bytes, int]:  # noqa: ARG001
    sheet = (draw_stacked_sheet if stacked else draw_sheet)(_shown, palette)
    width = round(sheet.width)
    return figures.encode_for_page(render_png(sheet), PIXELS * width), width


def _digest(shown: HeatmapTable) -> str:
    """Return one SHA-256 of all that the sheet depends on."""
    cells = [
        f"{column.lines} {cell.request.key} {cell.note} {cell.explanation is None} {cell.faithfulness is None}"
        for column, cell in shown.cells
    ]
    return digest(shown.title, shown.scaling, repr(shown.look), str(shown.is_pair), *cells)


def _numbers(column: HeatmapColumn, cell: Cell) -> dict[str, Any]:
    certificate, measures = cell.certificate, cell.faithfulness
    row: dict[str, Any] = {
        "method": cell.request.method,
        "image": column.image.chosen.name,
        "classifier": column.image.opened_from[0],
        "class": cell.request.class_name,
    }
    if certificate is None:
        return row | {"note": cell.note}
    row |= {
        "probability": certificate.probability,
        "completeness": certificate.completeness,
        "standard error": certificate.standard_error,
        "effective samples": certificate.effective_samples,
        "seed": None if certificate.seed is None else str(certificate.seed),
    }
    if measures is not None:
        areas = {curve.measure: float(curve.area[0]) for curve in (measures.deletion, measures.insertion)}
        row |= areas | {"mass": measures.mass, "rank": measures.rank, "peak on the object": measures.hit}
    return row
