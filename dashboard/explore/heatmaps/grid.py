"""Many heatmaps on one sheet: methods by images, by classes of one image, or by two classifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.drawing.sheet import PIXELS, render_png
from core.names import format_name
from dashboard.explore import figures
from dashboard.explore.heatmap_jobs import HeatmapRequest
from dashboard.explore.heatmaps import appearance, downloads
from dashboard.explore.heatmaps.agreement import show_agreement
from dashboard.explore.heatmaps.cells import PREDICTION, ClassifiedImage, cell_of, target_box, target_of
from dashboard.explore.heatmaps.closeup import show_closeup
from dashboard.explore.heatmaps.difference import show_difference
from dashboard.explore.heatmaps.predictions import TOP_HEADING, show_top_predictions
from dashboard.explore.heatmaps.sheet import Palette, draw_sheet, draw_stacked_sheet
from dashboard.explore.table import Cell, Column, HeatmapTable, Scaling
from dashboard.shared import links
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
ExplainedColumn = tuple[ClassifiedImage, int | None, Column]
"""An image as seen by a classifier, the class to explain (None: it has no such class), and its column."""


def show_by_image(seen: Sequence[ClassifiedImage], methods: MethodSettings, seed: int) -> None:
    """Show each image as a column: its predicted class, or one class for all."""
    if not seen:
        return
    with _controls():
        name = target_box(seen[0].classifier)
        show = _showing(any(s.chosen.mask is not None for s in seen))

    def column(s: ClassifiedImage) -> ExplainedColumn:
        target = target_of(s, name)
        explained = "" if target in (None, s.predicted_class) else f"explained: {s.format_confidence(target)}"
        return (
            s,
            target,
            s.column(*filter(None, (f"predicts {s.format_confidence(s.predicted_class)}", s.verdict, explained))),
        )

    show([column(s) for s in seen], methods, seed, "images")


def show_by_class(seen: ClassifiedImage, methods: MethodSettings, seed: int) -> None:
    """Show each class of one image as a column."""
    names = seen.classifier.names.short
    known = [TRUTH] if seen.truth is not None else []
    links.update_classes("classes", seen.classifier.names, [*RANK_LABELS, TRUTH], several=True)
    chosen = st.multiselect(
        "Classes",
        [*RANK_LABELS[: len(names)], *known, *names],
        [*RANK_LABELS[: min(3, len(names))], *known],
        key="classes",
        bind="query-params",
        max_selections=MOST_COLUMNS,
        wrap=True,
    )
    with _controls():
        show = _showing(seen.chosen.mask is not None)

    def target(name: str) -> int | None:
        return (
            seen.truth
            if name == TRUTH
            else seen.ranked_classes[RANK_LABELS.index(name)]
            if name in RANK_LABELS
            else names.index(name)
        )

    columns: dict[int, ExplainedColumn] = {}
    for name in chosen:
        k = target(name)
        if k is not None and k not in columns:
            columns[k] = (seen, k, seen.column(seen.format_confidence(k), name if name not in names else ""))
    if columns:
        show(list(columns.values()), methods, seed, "classes")


def show_by_classifier(pair: Sequence[ClassifiedImage], methods: MethodSettings, seed: int) -> None:
    """Show the same image and method for two classifiers."""
    predicted = list(dict.fromkeys(s.classifier.names.short[s.predicted_class] for s in pair))
    with _controls():
        name = target_box(pair[0].classifier, predicted)
        show = _showing(pair[0].chosen.mask is not None, "Own")  # two networks have logits of different scales
    if name == PREDICTION and len(predicted) > 1:
        _offer_same_class(pair, predicted)

    def column(s: ClassifiedImage) -> ExplainedColumn:
        target = target_of(s, name)
        explained = "" if target is None or name == PREDICTION else f"explained: {s.format_confidence(target)}"
        lines = (s.model, f"predicts {s.format_confidence(s.predicted_class)}", s.verdict, explained)
        return s, target, s.column(*filter(None, lines))

    show([column(s) for s in pair], methods, seed, CLASSIFIERS)


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


def _showing(
    object_known: bool, default: Scaling = "Shared"
) -> Callable[[list[ExplainedColumn], MethodSettings, int, str], None]:
    """Draw the controls of appearance; return the function that draws with them."""
    look = appearance.choose_style(object_known=object_known, clip=CLIP, clip_key="grid.clip")
    scaling = appearance.choose_scaling(default, "scale" if default == "Shared" else "pair.scale")
    measured = appearance.choose_faithfulness()
    closer = st.toggle("Slider and zoom", key="closer", bind="query-params", help=CLOSER_HELP)

    def show(explained: list[ExplainedColumn], methods: MethodSettings, seed: int, kind: str) -> None:
        if not methods:
            st.info("Choose a method.")
            return
        title, count = title_of(explained, methods), len(explained) * len(methods)
        if count > MOST_CELLS:
            st.info(f"{count} heatmaps are more than {MOST_CELLS}. Choose fewer images or methods.")
            return

        def collect(asking: JobCollector) -> HeatmapTable:
            asked = [_request(one, method, given, seed) for method, given in methods.items() for one in explained]
            asking.hold_together(one.task for one in asked)
            rows = {
                method: tuple(_cell(asking, one, method, given, seed, measured=measured) for one in explained)
                for method, given in methods.items()
            }
            columns = tuple(column for _, _, column in explained)
            return HeatmapTable(title, columns, rows, scaling, look, is_pair=kind == CLASSIFIERS)

        def draw(table: HeatmapTable) -> None:
            _draw(table, f"{'-'.join(_networks(explained))}-{kind}", closer=closer)
            if kind == CLASSIFIERS:
                _show_predictions(explained)

        with st.container(key="explore_heatmap"):  # which a phone shows before its controls
            draw_live(collect, draw)

    return show


def _show_predictions(explained: Sequence[ExplainedColumn]) -> None:
    """Draw the likeliest classes of each network, side by side."""
    st.header(TOP_HEADING, anchor=False)
    for place, (seen, target, _) in zip(st.columns(len(explained), gap="large"), explained, strict=True):
        with place:
            st.subheader(escape_markdown(seen.model), anchor=False)
            show_top_predictions(seen, target)


def title_of(explained: Sequence[ExplainedColumn], methods: Iterable[str]) -> str:
    """Name every network of a sheet, and its methods unless they are many: each heatmap has its name."""
    named = list(map(format_name, methods))
    said = ", ".join(named) if len(named) <= MOST_NAMED else f"{len(named)} methods"
    return f"{' and '.join(_networks(explained))}: {said}"


def _networks(explained: Sequence[ExplainedColumn]) -> list[str]:
    return list(dict.fromkeys(seen.classifier.name for seen, _, _ in explained))


def _cell(
    asking: JobCollector, explained: ExplainedColumn, method: str, given: dict[str, Any], seed: int, *, measured: bool
) -> Cell:
    seen, target, column = explained
    request = _request(explained, method, given, seed)
    if target is None:
        return Cell(request, note=f"{seen.classifier.name} has no such class.")
    return cell_of(asking, request, column, measured=measured)


def _request(explained: ExplainedColumn, method: str, given: dict[str, Any], seed: int) -> HeatmapRequest:
    seen, target, _ = explained
    return HeatmapRequest(seen.classifier, method, seen.inputs, target or 0, seed, given, seen.record)


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


def _name(column: Column, cell: Cell) -> str:
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


def _numbers(column: Column, cell: Cell) -> dict[str, Any]:
    certificate, measures = cell.certificate, cell.faithfulness
    row: dict[str, Any] = {
        "method": cell.request.method,
        "image": column.source.name,
        "classifier": column.source.model,
        "class": column.classifier.names.short[cell.request.target],
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
