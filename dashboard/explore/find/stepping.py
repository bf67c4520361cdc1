"""The previous and the next image, by buttons and by arrow keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

_HTML = """<nav aria-label="Images">
<button type="button" class="back" title="Previous image (left arrow key)">← Previous</button>
<span role="status"></span>
<button type="button" class="on" title="Next image (right arrow key)">Next →</button></nav>"""
_CSS = """
nav { display: flex; gap: .75rem; align-items: center; padding: 3px; font: .875rem/1.4 var(--st-font);
  color: var(--st-text-color); }
button { all: unset; cursor: pointer; padding: .25rem .75rem; border-radius: 8px;
  outline: 1px solid var(--st-border-color); }
button:hover { outline: 2px solid var(--st-text-color); }
button:focus-visible { outline: 3px solid var(--st-primary-color); }
button[aria-disabled=true] { opacity: .45; cursor: default; }
"""
_JS = """
const TAKES_ARROWS = "input, textarea, select, [contenteditable], [role=slider], [role=radiogroup], [role=radio], "
  + "[role=listbox], [role=combobox], [role=option], [role=menu], [role=tablist], [role=grid], [role=spinbutton], "
  + "[data-testid=stDataFrame], .js-plotly-plot";
export default function ({ data, parentElement, setTriggerValue }) {
  const nav = parentElement.querySelector("nav");
  const step = (by) => { if (data[by] !== null) setTriggerValue("stepped", data[by]); };
  nav.querySelector("span").textContent = data.says;
  for (const [name, by] of [["back", "before"], ["on", "after"]]) {
    const button = nav.querySelector(`.${name}`);
    button.setAttribute("aria-disabled", data[by] === null);
    button.onclick = () => step(by);
  }
  nav.keys?.abort();
  nav.keys = new AbortController();
  document.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: "before", ArrowRight: "after" }[event.key];
    if (!by || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.composedPath().some((part) => part.matches?.(TAKES_ARROWS))) return;
    event.preventDefault();
    step(by);
  }, { signal: nav.keys.signal });
  return () => nav.keys.abort();
}
"""


def show_steps(ranked: Sequence[int], shown: int, picked: Callable[[int], None]) -> None:
    """Draw where the shown image is in the order, with buttons to its neighbours, which are then ``picked``."""
    place = ranked.index(shown) if shown in ranked else -1
    before = ranked[place - 1] if place > 0 else None
    after = ranked[place + 1] if place + 1 < len(ranked) else None
    component = st.components.v2.component("foretell_steps", html=_HTML, css=_CSS, js=_JS)
    component(
        key="explore_steps",
        data={"before": before, "after": after, "says": f"Image {place + 1:,} of {len(ranked):,}"},
        on_stepped_change=lambda: picked(st.session_state["explore_steps"].stepped),
        width="content",
    )
