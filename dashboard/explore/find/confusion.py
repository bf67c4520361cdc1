"""The confusion matrix of a set: counts of true by predicted class, whose cells filter to their images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dashboard.explore.find.filters import ANY, set_filter
from dashboard.shared.cache import Gallery

MOST_CLASSES = 16
"""Classes of the matrix; of more, those with the most errors are shown."""

_CSS = """
.scroll { overflow: auto; max-height: 42rem; padding: 3px; }
table { border-collapse: separate; border-spacing: 2px; font: .75rem/1.3 var(--st-font); color: var(--st-text-color); }
th { font-weight: 400; text-align: end; padding: 0 .4rem; white-space: nowrap; }
tbody th { position: sticky; left: 0; background: var(--st-background-color); }
thead th { text-align: center; vertical-align: bottom; height: 6.5rem; padding: 0; }
thead th span { writing-mode: vertical-rl; transform: rotate(180deg); }
caption { text-align: start; padding-bottom: .3rem; }
td { padding: 0; text-align: center; min-width: 2rem; height: 1.6rem; }
button { all: unset; cursor: pointer; display: block; width: 100%; line-height: 1.6rem; border-radius: 4px;
  background: color-mix(in srgb, var(--colour) var(--strength), transparent); }
button:hover { outline: 2px solid var(--st-text-color); }
button:focus-visible, button[aria-pressed=true] { outline: 3px solid var(--st-primary-color); }
"""
_JS = """
export default function ({ data, parentElement, setTriggerValue }) {
  const make = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);
  const table = make("table", "");
  table.append(make("caption", "Rows: true class. Columns: predicted class."));
  const head = make("tr", "");
  head.append(make("td", ""));
  for (const name of data.columns) {
    const cell = make("th", "", { scope: "col" });
    cell.append(make("span", name));
    head.append(cell);
  }
  table.createTHead().append(head);
  const body = table.createTBody();
  data.rows.forEach((name, row) => {
    const line = body.insertRow();
    line.append(make("th", name, { scope: "row" }));
    data.columns.forEach((predicted, column) => {
      const count = data.counts[row][column], cell = line.insertCell();
      if (!count) return;
      const right = data.right[row][column];
      const button = make("button", count.toLocaleString("en"), { type: "button" });
      button.ariaLabel = `True class ${name}, predicted ${predicted}: ${count}`;
      button.title = button.ariaLabel;
      button.ariaPressed = data.chosen !== null && data.chosen[0] === name && data.chosen[1] === predicted;
      button.style.setProperty("--colour", right ? "#808495" : "#e66101");
      button.style.setProperty("--strength", `${Math.round(10 + 45 * count / data.largest[right ? 1 : 0])}%`);
      button.onclick = () => setTriggerValue("picked", [name, predicted]);
      cell.append(button);
    });
  });
  parentElement.querySelector(".scroll").replaceChildren(table);
}
"""


@dataclass(frozen=True)
class ConfusionMatrix:
    """Counts (R, C) of images by true class (rows) and predicted class (columns), and which cells are right.

    ``total`` counts all scored images, also those of classes that are left out.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    right: NDArray[np.bool_]
    total: int


def count_confusions(gallery: Gallery, fit: NDArray[np.bool_], most: int = MOST_CLASSES) -> ConfusionMatrix:
    """Count the scored images that fit; of more than ``most`` classes, those with the most errors are kept."""
    predictions, images = gallery.predictions, gallery.images
    names, classes = gallery.class_names, len(gallery.categories)
    scored = fit & gallery.has_known_label
    cells = images.labels[scored] * classes + predictions.predicted[scored]
    everything = np.bincount(cells, minlength=len(images.categories) * classes).reshape(-1, classes)
    truths = np.full(len(images.categories), -1)
    truths[images.labels] = predictions.truth
    truth, predicted = predictions.truth[scored], predictions.predicted[scored]
    wrong = truth != predicted
    errors = np.bincount(truth[wrong], minlength=classes) + np.bincount(predicted[wrong], minlength=classes)
    occurring = np.union1d(truth, predicted)
    kept = np.sort(occurring[np.argsort(-errors[occurring], kind="stable")[:most]])
    rows = [k for k in range(len(truths)) if truths[k] in kept and everything[k].any()]
    columns = [int(k) for k in kept if everything[:, k].any()]
    return ConfusionMatrix(
        tuple(images.categories[k] for k in rows),
        tuple(names[k] for k in columns),
        everything[np.ix_(rows, columns)],
        truths[rows][:, None] == np.array(columns, dtype=np.int64)[None],
        int(scored.sum()),
    )


def show_confusions(matrix: ConfusionMatrix, chosen: tuple[str, str], *, any_known: bool) -> None:
    """Draw the matrix; a click on a cell filters to its images, and a second click removes that filter.

    ``any_known``: a label of the set is a class of the network, so that images can be scored.
    """
    if not matrix.total:
        st.caption(
            "No image that can be scored matches the other filters."
            if any_known
            else "No image can be scored: no label is one of the network's classes."
        )
        return
    left_out = matrix.total - int(matrix.counts.sum())
    st.caption(
        "Click a number to see its images. Orange: errors; grey: right. "
        + (f"The classes with the most errors are shown; {left_out:,} images are in other cells." if left_out else "")
    )
    _draw_matrix(matrix, chosen)


def _draw_matrix(matrix: ConfusionMatrix, chosen: tuple[str, str]) -> None:
    def filter_cell() -> None:
        truth, predicted = st.session_state["explore_confusion"].picked
        if (truth, predicted) == chosen:
            truth = predicted = ANY
        set_filter(truth=truth, predicted=predicted)

    largest = [int(matrix.counts[matrix.right == right].max(initial=1)) for right in (False, True)]
    component = st.components.v2.component(
        "foretell_confusion", html='<div class="scroll" tabindex="0"></div>', css=_CSS, js=_JS
    )
    component(
        key="explore_confusion",
        data={
            "rows": list(matrix.rows),
            "columns": list(matrix.columns),
            "counts": matrix.counts.tolist(),
            "right": matrix.right.tolist(),
            "largest": largest,
            "chosen": list(chosen),
        },
        on_picked_change=filter_cell,
    )
