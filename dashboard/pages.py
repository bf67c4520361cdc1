"""The researcher's pages. Views are imported when they are opened: the first page does not wait for torch."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dashboard.shared import warming

# A local file: the icon of a Material symbol would be fetched from elsewhere.
ICON = Path(__file__).parent / "runner" / "icon.svg"
STYLE = """<style>
.stMainBlockContainer { max-width: 80rem; padding-inline: clamp(1rem, 3vw, 3rem); }
.door { text-align: end; font-size: .85rem; }
.door a { color: inherit; }
@media (max-width: 640px) { /* the image first, then what chooses it and how it is drawn */
  .st-key-explore_columns [data-testid=stColumn]:first-child:has(.st-key-explore_controls) { order: 2; }
  [data-testid=stLayoutWrapper]:has(> .st-key-explore_look) { order: 2; }
  .st-key-explore_filters > * { flex: 1 1 40%; }
  .modebar { display: none; } /* always shown on a touch screen, over the legend and the title */
  [data-testid=stTable] :is(th, td) { padding: .3rem .2rem !important; font-size: .7rem; }
}
</style>"""
LEAVE = '<p class="door"><a href="/login" target="_self">Log out</a></p>'


class Page(NamedTuple):
    """One page: its module has a function ``page()``. Home shows a card of those that have a heading."""

    title: str
    icon: str
    module: str
    heading: str = ""
    text: str = ""


PAGES = {
    "explore": Page(
        "Explore",
        "image_search",
        "dashboard.explore.page",
        "Explain a classifier",
        "Heatmaps of its predictions by many methods, each with a certificate of how reliable it is.",
    ),
    "studies": Page(
        "Studies",
        "science",
        "dashboard.studies.page",
        "Run an experiment",
        "Build a study from explanations, check every trial, open it, and monitor its participants.",
    ),
    "monitor": Page("Monitor", "monitoring", "dashboard.monitor.page"),
    "teaching": Page(
        "Teaching",
        "school",
        "dashboard.teaching.page",
        "Inspect the teaching examples",
        "Why these examples: the pool in the learner's space, other sets, and the learner's belief after each example.",
    ),
    "power": Page(
        "Power",
        "calculate",
        "dashboard.power.page",
        "Plan your sample size",
        "Power and cost by the number of participants, from the paper, a pilot, or simulated participants.",
    ),
    "results": Page(
        "Results",
        "bar_chart",
        "dashboard.results.page",
        "See the results",
        "Mixed models of how well participants predict the AI, plain-language tests, and figures to download.",
    ),
}
"""Every page but Home, by the path of its address."""


def main() -> None:
    """Show the navigation and the page that is open."""
    linked = {name: _linked_page(name, page) for name, page in PAGES.items()}

    def start() -> None:
        from dashboard.home import page as home

        home.page({linked[name]: (page.heading, page.text) for name, page in PAGES.items() if page.heading})

    st.set_page_config(page_title="Foretell", page_icon=str(ICON), layout="wide")
    st.html(STYLE)
    warming.begin()
    home = st.Page(start, title="Home", url_path="", default=True, icon=":material/home:")
    st.navigation([home, *linked.values()], position="top").run()
    st.html(LEAVE)
    warming.finish()


def _linked_page(name: str, page: Page) -> StreamlitPage:
    def run() -> None:
        importlib.import_module(page.module).page()

    return st.Page(run, title=page.title, url_path=name, icon=f":material/{page.icon}:")


if __name__ == "__main__":  # a spawned process imports this file too, but is not a page
    main()
