"""The researcher's pages. Views are imported when they are opened: the first page does not wait for torch."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Literal, NamedTuple

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dashboard.shared import popovers, warming

# A local file: the icon of a Material symbol would be fetched from elsewhere.
HERE = Path(__file__).parent
ICON = HERE / "runner" / "icon.svg"
SHEET_WIDTHS = (1084, *range(374, 1873, 214))
"""Widths of sheets of heatmaps, px: of many methods in lines, and of one to eight columns."""
SHRINKING = 0.98
"""Of its width, to which a sheet shrinks before it scrolls: five methods next to each other fit 1440 px."""
STYLE = "".join(
    [
        f"<style>{(HERE / 'style.css').read_text(encoding='utf-8')}",
        *(f".st-key-explore_sheet_{px} img {{ min-width: {SHRINKING * px:.0f}px; }}\n" for px in SHEET_WIDTHS),
        "</style>",
    ]
)
DOOR = (
    '<nav class="door" aria-label="Help and account"><a href="/help" target="_blank">Help</a>'
    '<a href="/docs/index.html" target="_blank">Docs</a><a href="/login" target="_self">Log out</a></nav>'
)


class Page(NamedTuple):
    """One page: its module has a function ``page()``. Home shows a card of those that have a heading.

    A hidden page is not in the navigation: another page links to it.
    """

    title: str
    icon: str
    module: str
    heading: str = ""
    text: str = ""
    hidden: bool = False


PAGES = {
    "explore": Page(
        "Explore",
        "image_search",
        "dashboard.explore.page",
        "Explain a classifier",
        "Heatmaps, and how reliable each is.",
    ),
    "library": Page(
        "Models & images",
        "add_photo_alternate",
        "dashboard.library.page",
        "Bring your own images",
        "Your own network, or a built-in one.",
    ),
    "design": Page(
        "Design",
        "edit_note",
        "dashboard.design.page",
        "Design a study",
        "Images, explanations, plan, preview.",
    ),
    "power": Page(
        "Power",
        "calculate",
        "dashboard.power.page",
        "Plan your sample size",
        "Power and cost by number of participants.",
    ),
    "studies": Page(
        "Studies",
        "science",
        "dashboard.studies.page",
        "Collect responses",
        "Build, check and open it by a link.",
    ),
    "monitor": Page("Monitor", "monitoring", "dashboard.monitor.page"),
    "coding": Page("Coding", "rate_review", "dashboard.coding.page", hidden=True),
    "results": Page(
        "Results",
        "bar_chart",
        "dashboard.results.page",
        "See the results",
        "Tests in plain language, and figures.",
    ),
    "teaching": Page("Teaching", "school", "dashboard.teaching.page"),
    "accounts": Page("Accounts", "group", "dashboard.studies.accounts", hidden=True),
}
"""Every page but Home and Help, by the path of its address, in the order in which a researcher needs them."""
STEP_0 = "library"
"""The page whose card on Home comes first, with the number 0: this step may be left out."""


def main() -> None:
    """Show the navigation and the page that is open."""
    linked = {name: _linked_page(name, page) for name, page in PAGES.items()}

    def start() -> None:
        from dashboard.home import page as home

        steps = {name: (page.heading, page.text) for name, page in PAGES.items() if page.heading}
        home.page(linked, {STEP_0: steps.pop(STEP_0), **steps})

    def assist() -> None:
        from dashboard.home import helping

        helping.page()

    st.set_page_config(page_title="Foretell", page_icon=str(ICON), layout="wide")
    st.html(STYLE)
    st.html(DOOR)
    popovers.follow_keyboard()
    st.logo(str(ICON), size="large")
    warming.begin()
    home = st.Page(start, title="Home", url_path="", default=True, icon=":material/home:")
    guide = st.Page(assist, title="Help", url_path="help", visibility="hidden")
    st.navigation([home, *linked.values(), guide], position="top").run()
    warming.finish()


def _linked_page(name: str, page: Page) -> StreamlitPage:
    def run() -> None:
        importlib.import_module(page.module).page()

    visibility: Literal["visible", "hidden"] = "hidden" if page.hidden else "visible"
    return st.Page(run, title=page.title, url_path=name, icon=f":material/{page.icon}:", visibility=visibility)


if __name__ == "__main__":  # a spawned process imports this file too, but is not a page
    main()
