"""How far the methods of a grid agree: a matrix of rank correlations."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from core.faithfulness.agreement import correlate_all, order_by_similarity
from core.names import format_name
from dashboard.explore.table import HeatmapTable
from dashboard.shared import files
from dashboard.shared.keys import digest
from study.workspace.spreadsheets import csv_text

STRONGEST = 62
"""Share of the colour at a correlation of 1, %: the words on it have a contrast above 4.5 on light and dark pages."""
_STYLE = """<style>
.agreement { overflow: auto; max-height: 80vh; padding: 2px; }
.agreement table { display: table; border-collapse: separate; border-spacing: 1px; width: auto;
  font: .6875rem/1 ui-sans-serif, system-ui, sans-serif; font-variant-numeric: tabular-nums; }
.agreement caption { text-align: start; padding-bottom: .4rem; font-size: .75rem; }
.agreement :is(th, td) { border: 0; padding: 0; font-weight: 400; }
.agreement tbody th { position: sticky; left: 0; z-index: 1; text-align: end; padding-inline: .4rem;
  white-space: nowrap; background: light-dark(#fff, #14161b); }
.agreement thead th { vertical-align: bottom; padding-bottom: .3rem; }
.agreement thead span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; }
.agreement td { text-align: center; min-width: 1.6rem; height: 1.5rem; border-radius: 2px; }
.agreement .together { background: color-mix(in srgb, light-dark(#3a62c8, #5b8cff) var(--strength), transparent); }
.agreement .against { background: color-mix(in srgb, light-dark(#e66101, #d2691e) var(--strength), transparent); }
</style>"""


def show_agreement(shown: HeatmapTable, stem: str) -> None:
    """Draw the agreement of every two methods in a part that can be opened, if there are two."""
    if len(shown.rows) < 2:
        return
    with st.expander("Agreement of methods", on_change="rerun") as part:
        if not part.open:  # ranking every pixel takes a while
            return
        keys = [f"{cell.request.key} {cell.explanation is None}" for _, cell in shown.cells]
        table = order_methods(_correlate(digest(*keys), shown))
        if len(table) < 2:
            st.caption("Fewer than two methods have a heatmap so far.")
            return
        st.caption(
            "Spearman's rank correlation of the size of the evidence at each pixel: the correlation of the ranks, ties "
            "by their mean rank (Spearman 1904, doi:10.2307/1412159), averaged over the columns of the grid. 1: the "
            "same pixels matter most; 0: nothing in common. Directions, for or against the class, are not compared. "
            "Similar methods are next to each other (average linkage)."
        )
        st.html(draw_matrix(table))
        content = csv_text(table)
        files.offer_download(f"{stem}.agreement.csv", lambda: content, f"{stem}.agreement.csv", "text/csv")


def order_methods(table: pd.DataFrame) -> pd.DataFrame:
    """Order the methods of a table of `tabulate_agreement` by similarity, without those that have no heatmap."""
    values = table.drop(columns="method").to_numpy(np.float64)
    known = np.flatnonzero(~np.isnan(values.diagonal()))
    order = known[order_by_similarity(values[np.ix_(known, known)])]
    names = list(table["method"].iloc[order])
    return pd.DataFrame(values[np.ix_(order, order)], columns=names).assign(method=names)[["method", *names]]


def draw_matrix(table: pd.DataFrame) -> str:
    """Draw correlations as HTML: their two decimals, on a colour that is the stronger the further they are from 0."""
    names = list(map(escape, table["method"]))
    heads = "".join(f'<th scope="col"><span>{name}</span></th>' for name in names)
    values = table.drop(columns="method").to_numpy(np.float64)
    lines = [
        f'<tr><th scope="row">{name}</th>{"".join(map(_draw_cell, row))}</tr>'
        for name, row in zip(names, values, strict=True)
    ]
    caption = "Rank correlations, without the zero before the point; blue: positive, orange: negative."
    return (
        f'{_STYLE}<div class="agreement" tabindex="0" role="region" aria-label="Agreement of methods"><table>'
        f"<caption>{caption}</caption><thead><tr><td></td>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _draw_cell(value: float) -> str:
    if np.isnan(value):
        return "<td>–</td>"
    text = "1" if value > 0.995 else f"{abs(value):.2f}".removeprefix("0")
    sign = "−" if value < 0 and text != ".00" else ""
    kind = "against" if value < 0 else "together"
    return f'<td class="{kind}" style="--strength: {abs(value) * STRONGEST:.0f}%">{sign}{text}</td>'


@st.cache_data(max_entries=24, show_spinner=False)
def _correlate(key: str, _shown: HeatmapTable) -> pd.DataFrame:  # noqa: ARG001
    return tabulate_agreement(_shown)


def tabulate_agreement(shown: HeatmapTable) -> pd.DataFrame:
    """Return the mean rank correlation of every two methods over the columns in which both have a heatmap."""
    count = len(shown.rows)
    each = np.full((len(shown.columns), count, count), np.nan)
    for k in range(len(shown.columns)):
        made = {r: row[k].explanation for r, row in enumerate(shown.rows.values())}
        known = {r: explanation for r, explanation in made.items() if explanation is not None}
        if known:
            each[k][np.ix_(list(known), list(known))] = correlate_all(list(known.values()))
    present = ~np.isnan(each)
    sums, counts = np.where(present, each, 0).sum(0), present.sum(0)
    mean = np.divide(sums, counts, out=np.full((count, count), np.nan), where=counts > 0)
    names = list(map(format_name, shown.rows))
    return pd.DataFrame(mean, columns=names).assign(method=names)[["method", *names]]
