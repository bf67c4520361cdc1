"""The cells of a grid under one slider from image to heatmap, zoomed and moved together."""

from __future__ import annotations

import base64
import io
from typing import Any

import streamlit as st
from PIL import Image

from core.drawing.rendering import Scale
from core.names import format_name
from dashboard.explore.figures import HeatmapDrawing
from dashboard.explore.table import HeatmapColumn, HeatmapTable

MOST_LARGE = 40
"""Cells that are sent at full size: more of them are half as wide."""
_HTML = """<div class="controls">
<label>Heatmap up to <input class="cut" type="range" min="0" max="100" value="50"></label>
<label>Zoom <input class="zoom" type="range" min="1" max="8" step="0.5" value="1"></label>
<button type="button">Whole image</button></div>
<p class="hint">Drag over a cell, or press the arrow keys in it: left and right move the edge between image and heatmap,
and, once zoomed in, every direction moves all cells. The keys + and − zoom.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Cells"><div class="cells"></div></div>"""
_CSS = """
.controls { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; padding: 3px; }
.controls, .hint, .cells { font: .875rem/1.4 var(--st-font); color: var(--st-text-color); }
label { display: flex; gap: .5rem; align-items: center; }
input { width: 11rem; accent-color: var(--st-primary-color); }
button { all: unset; cursor: pointer; padding: .25rem .75rem; border-radius: 8px;
  outline: 1px solid var(--st-border-color); }
button:hover { outline: 2px solid var(--st-text-color); }
:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 1px; }
.hint { margin: .35rem 3px; font-size: .8rem; }
.scroll { overflow-x: auto; }
.cells { display: grid; gap: 6px; padding: 3px; align-items: end; }
.title { font-weight: 600; overflow-wrap: anywhere; align-self: center; }
.cell { position: relative; overflow: hidden; border-radius: 6px; cursor: ew-resize; touch-action: pan-y;
  aspect-ratio: var(--ratio); }
.zoomed .cell { cursor: move; touch-action: none; }
.layer { position: absolute; inset: 0; overflow: hidden; }
.layer.over { clip-path: inset(0 calc(100% - var(--cut)) 0 0); }
.cell::after { content: ""; position: absolute; inset: 0 auto 0 calc(var(--cut) - 1px); width: 2px; background: #fff;
  box-shadow: 0 0 0 1px #000; }
img { position: absolute; width: 100%; height: 100%; transform-origin: 0 0; user-select: none; pointer-events: none;
  transform: scale(var(--zoom)) translate(calc(-100% * var(--x)), calc(-100% * var(--y))); }
.title small { display: block; font-weight: 400; }
.ends { font-size: .75rem; margin-bottom: .5rem; }
.note { font-size: .8rem; align-self: center; }
"""
_JS = """
const STEP = 5; // hundredths that an arrow key moves
export default function ({ data, parentElement }) {
  const root = parentElement, grid = root.querySelector(".cells"), cut = root.querySelector(".cut"),
    zoom = root.querySelector(".zoom"), state = grid.state ??= { cut: 50, zoom: 1, x: 0, y: 0 };
  const limit = (value, low, high) => Math.min(Math.max(value, low), high);
  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const draw = () => {
    state.zoom = limit(state.zoom, 1, 8);
    const free = 1 - 1 / state.zoom;
    state.x = limit(state.x, 0, free);
    state.y = limit(state.y, 0, free);
    state.cut = limit(state.cut, 0, 100);
    grid.classList.toggle("zoomed", state.zoom > 1);
    for (const name of ["zoom", "x", "y"]) grid.style.setProperty(`--${name}`, state[name]);
    grid.style.setProperty("--cut", `${state.cut}%`);
    [cut.value, zoom.value] = [state.cut, state.zoom];
  };
  const change = (values) => { Object.assign(state, values); draw(); };
  const zoomTo = (value) => { // the middle of the cells stays where it is
    const [x, y] = [state.x + 0.5 / state.zoom, state.y + 0.5 / state.zoom];
    change({ zoom: value, x: x - 0.5 / value, y: y - 0.5 / value });
  };
  const move = (right, down) => (state.zoom > 1
    ? change({ x: state.x + right / 100 / state.zoom, y: state.y + down / 100 / state.zoom })
    : change({ cut: state.cut + right }));
  cut.oninput = () => change({ cut: Number(cut.value) });
  zoom.oninput = () => zoomTo(Number(zoom.value));
  root.querySelector("button").onclick = () => change({ cut: 50, zoom: 1, x: 0, y: 0 });
  const KEYS = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
  const onkeydown = (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in KEYS && (state.zoom > 1 || KEYS[event.key][0])) move(...KEYS[event.key]);
    else if (["+", "="].includes(event.key)) zoomTo(limit(state.zoom + 0.5, 1, 8));
    else if (event.key === "-") zoomTo(limit(state.zoom - 0.5, 1, 8));
    else return;
    event.preventDefault();
  };
  const onpointerdown = (event) => {
    const cell = event.currentTarget, box = cell.getBoundingClientRect();
    if (state.zoom === 1) change({ cut: 100 * (event.clientX - box.left) / box.width });
    cell.setPointerCapture(event.pointerId);
  };
  const onpointermove = (event) => {
    const cell = event.currentTarget, box = cell.getBoundingClientRect();
    if (!cell.hasPointerCapture(event.pointerId)) return;
    if (state.zoom === 1) return change({ cut: 100 * (event.clientX - box.left) / box.width });
    move(-100 * event.movementX / box.width, -100 * event.movementY / box.height);
  };
  const layer = (source, kind) => make("div", { className: `layer ${kind}` }, make("img", { src: source, alt: "" }));
  const cellOf = (heat, column, title) => {
    if (!heat.source) return make("span", { className: "note", textContent: heat.note });
    const handlers = { onkeydown, onpointerdown, onpointermove };
    const cell = make("div", { className: "cell", tabIndex: 0, ...handlers },
      layer(column.source, "under"), layer(heat.source, "over"));
    cell.setAttribute("role", "group");
    cell.setAttribute("aria-label", `${title}, ${column.lines[0]}: image and heatmap`);
    cell.style.setProperty("--ratio", column.ratio);
    return cell;
  };
  grid.style.gridTemplateColumns = `minmax(5rem, 8rem) repeat(${data.columns.length}, minmax(9rem, 1fr))`;
  grid.replaceChildren(
    make("span", {}),
    ...data.columns.map(({ lines }) => make("span", { textContent: lines.join(" · ") })),
    ...data.rows.flatMap(({ title, words, heats }) => [
      make("span", { className: "title", textContent: title }, make("small", { textContent: words })),
      ...heats.map((heat, k) => cellOf(heat, data.columns[k], title)),
      make("span", { className: "ends", textContent: "Full blue to full orange" }),
      ...heats.map(({ ends }) => make("span", { className: "ends", textContent: ends }))]),
  );
  draw();
}
"""


def show_closeup(shown: HeatmapTable, key: str) -> None:
    """Draw the cells; ``key`` is one SHA-256 of all that they depend on. Nothing is asked of the server afterwards."""
    component = st.components.v2.component("foretell_closeup", html=_HTML, css=_CSS, js=_JS)
    component(key="explore_closeup", data=encode_cells(key, shown))


@st.cache_data(max_entries=8, show_spinner=False)
def encode_cells(key: str, _shown: HeatmapTable) -> dict[str, Any]:  # noqa: ARG001
    """Encode the image of each column, and each heatmap over it or the note in its place."""
    share = 1.0 if len(_shown.cells) <= MOST_LARGE else 0.5
    columns: dict[int, str] = {}
    rows = []
    for method, row in _shown.rows.items():
        heats = []
        for k, (column, cell, scale) in enumerate(zip(_shown.columns, row, _shown.scales(method), strict=True)):
            if cell.explanation is None:
                heats.append({"source": "", "note": cell.note, "ends": ""})
                continue
            assert scale is not None
            drawing = HeatmapDrawing(column.image.view, cell.explanation, column.image.chosen.mask, scale)
            heats.append({"source": _encode(drawing.draw(_shown.look), share), "note": "", "ends": name_ends(scale)})
            columns.setdefault(k, _encode(drawing.draw_input(outline=_shown.look.outline), share))
        rows.append({"title": format_name(method), "words": _tell_colours(method, _shown), "heats": heats})
    return {"columns": [_describe(column, columns.get(k, "")) for k, column in enumerate(_shown.columns)], "rows": rows}


def name_ends(scale: Scale) -> str:
    """Name the values of the two full colours, as the scale of a heatmap alone does."""
    return f"{scale.zero - scale.limit:.3g} to {scale.zero + scale.limit:.3g}".replace("-", "−")


def _tell_colours(method: str, shown: HeatmapTable) -> str:
    if shown.look.style == "Outline":
        return f"Outlined: the {shown.look.percent:g}% of pixels with the strongest evidence for the class"
    return shown.describe_colours(method)


def _describe(column: HeatmapColumn, source: str) -> dict[str, Any]:
    own = column.image.view.own
    return {"lines": list(column.lines), "source": source, "ratio": own.width / own.height}


def _encode(image: Image.Image, share: float) -> str:
    buffer = io.BytesIO()
    small = image.resize((round(image.width * share), round(image.height * share)))
    small.save(buffer, "WEBP", quality=85, method=0)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
