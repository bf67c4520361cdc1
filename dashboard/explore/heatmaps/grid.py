"""Many maps on one sheet: methods by pictures, by classes of one picture, or by two classifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.explore import canvas, figures, table
from dashboard.explore.heatmap_jobs import MapRequest
from dashboard.explore.heatmaps import appearance, downloads
from dashboard.explore.heatmaps.cells import ANSWER, Seen, cell_of, class_names, target_box, target_of
from dashboard.explore.table import Cell, Column, Scaling, Table, words
from dashboard.shared.keys import digest
from dashboard.shared.live import Asking, live
from dashboard.shared.messages import escaped
from study.network.sources import plain

MOST_COLUMNS = 8
CLIP = 2.0
"""Percentage of pixels in full colour: gradients and relevance have few extreme values that hide all others."""
PLACES = ("Answer", "2nd answer", "3rd answer", "4th answer", "5th answer")
TRUTH = "The truth"
Settings = dict[str, dict[str, Any]]
Explained = tuple[Seen, int | None, Column]
"""A picture as seen by a classifier, the class to explain (None: it has none such), and its column."""


def by_picture(seen: Sequence[Seen], methods: Settings, seed: int) -> None:
    """Each picture a column: the answer to it, or one class for all."""
    if not seen:
        return
    with _controls():
        name = target_box(seen[0].classifier)
        show = _showing(any(s.chosen.mask is not None for s in seen))

    def column(s: Seen) -> Explained:
        target = target_of(s, name)
        explained = "" if target in (None, s.answer) else f"explained: {s.says(target)}"
        return s, target, s.column(*filter(None, (f"says {s.says(s.answer)}", s.verdict, explained)))

    show([column(s) for s in seen], methods, seed, "pictures")


def by_class(seen: Seen, methods: Settings, seed: int) -> None:
    """Each class of one picture a column."""
    names = class_names(seen.classifier)
    known = [TRUTH] if seen.truth is not None else []
    chosen = st.multiselect(
        "Classes",
        [*PLACES[: len(names)], *known, *names],
        [*PLACES[: min(3, len(names))], *known],
        key="classes",
        bind="query-params",
        max_selections=MOST_COLUMNS,
        wrap=True,
    )
    with _controls():
        show = _showing(seen.chosen.mask is not None)

    def target(name: str) -> int | None:
        return seen.truth if name == TRUTH else seen.ranked[PLACES.index(name)] if name in PLACES else names.index(name)

    columns: dict[int, Explained] = {}
    for name in chosen:
        k = target(name)
        if k is not None and k not in columns:
            columns[k] = (seen, k, seen.column(seen.says(k), name if name not in names else ""))
    if columns:
        show(list(columns.values()), methods, seed, "classes")


def by_classifier(pair: Sequence[Seen], methods: Settings, seed: int) -> None:
    """The same picture and method, by two classifiers."""
    with _controls():
        name = target_box(pair[0].classifier)
        show = _showing(pair[0].chosen.mask is not None, "Own")  # two networks have logits of different scales

    def column(s: Seen) -> Explained:
        target = target_of(s, name)
        explained = "" if name == ANSWER or target is None else f"explained: {s.says(target)}"
        lines = (s.model, f"says {s.says(s.answer)}", s.verdict, explained)
        return s, target, s.column(*filter(None, lines))

    show([column(s) for s in pair], methods, seed, "classifiers")


def _controls() -> Any:
    return st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="explore_look")


def _showing(object_known: bool, default: Scaling = "Shared") -> Callable[[list[Explained], Settings, int, str], None]:
    """Controls of how maps are shown; then what shows them so."""
    look = appearance.look(object_known=object_known, clip=CLIP, clip_key="grid.clip")
    scaling = appearance.scaling(default, "scale" if default == "Shared" else "pair.scale")
    measured = appearance.measured()

    def show(explained: list[Explained], methods: Settings, seed: int, kind: str) -> None:
        if not methods:
            st.info("Choose a method.")
            return
        title = title_of(explained, methods)

        def collect(asking: Asking) -> Table:
            rows = {
                method: tuple(_cell(asking, one, method, given, seed, measured=measured) for one in explained)
                for method, given in methods.items()
            }
            return Table(title, tuple(column for _, _, column in explained), rows, scaling, look)

        live(collect, lambda found: _draw(found, f"{'-'.join(_networks(explained))}-{kind}"))

    return show


def title_of(explained: Sequence[Explained], methods: Iterable[str]) -> str:
    """Name every network and method of a sheet."""
    return f"{' and '.join(_networks(explained))}: {', '.join(map(words, methods))}"


def _networks(explained: Sequence[Explained]) -> list[str]:
    return list(dict.fromkeys(seen.classifier.name for seen, _, _ in explained))


def _cell(
    asking: Asking, explained: Explained, method: str, given: dict[str, Any], seed: int, *, measured: bool
) -> Cell:
    seen, target, column = explained
    request = MapRequest(seen.classifier, method, seen.inputs, target or 0, seed, given)
    if target is None:
        return Cell(request, note=f"{seen.classifier.name} has no such class.")
    return cell_of(asking, request, column, measured=measured)


def _draw(shown: Table, stem: str) -> None:
    told = "; ".join(f"{_name(column, c)}{'' if c.explanation else f': {c.note}'}" for column, c in shown.cells)
    # As PNG: the small words of the sheet do not survive JPEG.
    st.image(_picture(_digest(shown), shown), width="stretch", alt=f"Maps: {told}", output_format="PNG")
    downloads.bar(shown, stem)
    with st.expander("Numbers: certificates and measures"):
        st.dataframe(pd.DataFrame([_numbers(column, cell) for column, cell in shown.cells]), hide_index=True)
        for column, cell in shown.cells:
            for warning in cell.certificate.warnings if cell.certificate else ():
                st.warning(escaped(f"{_name(column, cell)}: {warning}"))


def _name(column: Column, cell: Cell) -> str:
    return f"{words(cell.request.method)}, {column.lines[0]}"


@st.cache_data(max_entries=24, show_spinner=False)
def _picture(key: str, _shown: Table) -> bytes:  # noqa: ARG001
    return figures.png(canvas.png(table.sheet(_shown)))


def _digest(shown: Table) -> str:
    """All that the sheet depends on, as one SHA-256."""
    cells = [
        f"{column.lines} {cell.request.key} {cell.note} {cell.explanation is None} {cell.faithfulness is None}"
        for column, cell in shown.cells
    ]
    return digest(shown.title, shown.scaling, repr(shown.look), *cells)


def _numbers(column: Column, cell: Cell) -> dict[str, Any]:
    found, measures = cell.certificate, cell.faithfulness
    row: dict[str, Any] = {
        "method": cell.request.method,
        "picture": column.source.name,
        "classifier": column.source.model,
        "class": plain(column.classifier.categories[cell.request.target]),
    }
    if found is None:
        return row | {"note": cell.note}
    row |= {
        "probability": found.probability,
        "completeness": found.completeness,
        "standard error": found.standard_error,
        "effective samples": found.effective_samples,
        "seed": None if found.seed is None else str(found.seed),
    }
    if measures is not None:
        areas = {curve.measure: float(curve.area[0]) for curve in (measures.deletion, measures.insertion)}
        row |= areas | {"mass": measures.mass, "rank": measures.rank, "peak on the object": measures.hit}
    return row
