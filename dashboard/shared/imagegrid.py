"""A grid of small images, each a button with lines of text below it; one may show a heatmap under the mouse."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import lru_cache

import streamlit as st
from PIL import Image, ImageOps

from data.types import ImageSet

ENCODERS = 4
"""Threads that make the thumbnails of a page."""
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
figure .heat { position: absolute; inset: 0; }
button[aria-busy=true] figure { animation: wait 1s infinite alternate; }
@keyframes wait { to { opacity: .6; } }
@media (prefers-reduced-motion: reduce) { button[aria-busy=true] figure { animation: none; opacity: .7; } }
"""
_JS = """
const kept = {}; // by address: an image, or null where there is none
const DWELL = 150; // ms that the mouse has to stay on an image

async function load(address, signal) {
  for (let tries = 0; tries < 12; tries++) {
    const reply = await fetch(address, { signal });
    if (reply.status !== 202) return { reply, content: await (reply.ok ? reply.blob() : reply.text()) };
  }
  throw new Error("no heatmap in time");
}

// Shows the heatmap of a thumbnail while the mouse or the focus is on it.
function revealing(button, figure, address) {
  let leave = null;
  const show = (image) => {
    figure.querySelector(".heat")?.remove();
    const heat = Object.assign(document.createElement("img"), { className: "heat", src: image, alt: "" });
    figure.append(heat);
  };
  button.onmouseenter = button.onfocus = async () => {
    if (leave) return;
    leave = new AbortController();
    const { signal } = leave;
    await new Promise((resolve) => setTimeout(resolve, DWELL));
    if (signal.aborted) return;
    try {
      if (!(address in kept)) {
        button.setAttribute("aria-busy", "true");
        const { reply, content } = await load(address, signal);
        kept[address] = reply.ok ? URL.createObjectURL(content) : null;
        if (!reply.ok) button.title += `. No heatmap: ${content}`;
      }
      if (!signal.aborted && kept[address]) show(kept[address]);
    } catch { /* left before it was there, or no connection */ }
    button.removeAttribute("aria-busy");
  };
  button.onmouseleave = button.onblur = () => {
    leave?.abort();
    leave = null;
    figure.querySelector(".heat")?.remove();
  };
}
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
    if (data.heatmaps) revealing(button, figure, data.heatmaps + index);
    button.onclick = () => setTriggerValue("picked", index);
    return button;
  }));
}
"""


@dataclass(frozen=True)
class GridCell:
    """An image of a grid: its number in the set, what it is called, and lines of text below it.

    It is underlined if it is ``wrong``, and framed if it is ``chosen``.
    """

    index: int
    says: str
    lines: Sequence[str] = ()
    wrong: bool = False
    chosen: bool = False


def show_grid(
    key: str,
    images: ImageSet,
    cells: Sequence[GridCell],
    picked: Callable[[int], None],
    *,
    pixels: int,
    width: str,
    heatmaps: str = "",
) -> None:
    """Draw images of a set, each at least ``width`` wide, from thumbnails of so many ``pixels``; a click is ``picked``.

    ``heatmaps`` is the address of their heatmaps, to which the number of an image is appended, or empty.
    """
    sources = _encode_all(images, [cell.index for cell in cells], pixels)
    component = st.components.v2.component("foretell_picker", html='<div class="grid"></div>', css=_CSS, js=_JS)
    component(
        key=key,
        data={
            "side": width,
            "heatmaps": heatmaps,
            "cells": [{"source": source} | asdict(cell) for cell, source in zip(cells, sources, strict=True)],
        },
        on_picked_change=lambda: picked(st.session_state[key].picked),
    )


def make_thumbnail(image: Image.Image, side: int = 96) -> bytes:
    """Make a small square WebP of the middle of an image."""
    buffer = io.BytesIO()
    small = ImageOps.fit(image.convert("RGB"), (side, side), Image.Resampling.LANCZOS)
    small.save(buffer, "WEBP", quality=80, method=0)  # a fifth of the time of the default, for a fifth more bytes
    return buffer.getvalue()


@dataclass(frozen=True)
class _Thumbnail:
    """A thumbnail to encode, identified by its key alone."""

    key: str
    images: ImageSet = field(compare=False)
    index: int = field(compare=False)
    side: int = field(compare=False)


@lru_cache(maxsize=4000)
def _encode(asked: _Thumbnail) -> str:
    content = make_thumbnail(asked.images.open(asked.index), asked.side)
    return "data:image/webp;base64," + base64.b64encode(content).decode()


def _encode_all(images: ImageSet, indices: Sequence[int], side: int) -> list[str]:
    """Encode the thumbnails of one page in parallel: Pillow computes outside Python's lock."""
    asked = [_Thumbnail(f"{images.digest}/{i}/{side}", images, i, side) for i in indices]
    with ThreadPoolExecutor(ENCODERS) as threads:
        return list(threads.map(_encode, asked))
