"""The researcher's pages. Views are imported when they are opened: the first page does not wait for torch."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Literal, NamedTuple

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dashboard.shared import popovers, warming

# A local file: the icon of a Material symbol would be fetched from elsewhere.
ICON = Path(__file__).parent / "runner" / "icon.svg"
STYLE = """<style>
.stMainBlockContainer { max-width: 80rem; padding-inline: clamp(1rem, 3vw, 3rem); padding-top: 4rem; }
.stMain { scroll-padding-block: 4.5rem 1rem; } /* what gets the focus is not below the header: WCAG 2.2, 2.4.11 */
/* Sheets and galleries have the whole window, and their controls no more of it than they need. The views of Explore
   begin at the same place: the choice between them stays where it is. */
.stMainBlockContainer:has(.st-key-explore_about) { max-width: 120rem; padding-inline: clamp(1rem, 2vw, 3rem); }
.st-key-explore_narrow { max-width: 86rem; }
@media (min-width: 1000px) { .st-key-explore_wide [data-testid=stColumn]:has(.st-key-explore_controls) {
  flex: 0 0 17rem; min-width: 17rem; } }
/* The name has the ink of the theme, also when the colour scheme changes while the page is open. */
:has(> .stLogo) { display: flex; align-items: center; }
:has(> .stLogo)::after { content: "Foretell"; margin-inline-start: .5rem; color: inherit;
  font: 700 1.125rem/1 Inter, system-ui, sans-serif; }
.stAppHeader { padding-inline-end: 10.5rem; } /* room for the links, which are drawn above it */
/* Else below 4.5. */
:is(.stApp, [data-testid=stPopoverBody]) [data-testid=stCaptionContainer] { color: inherit; opacity: .75; }
.stApp [data-testid=stCaptionContainer] a { color: inherit; text-decoration: underline; }
/* White on the light blue of the dark theme has a contrast of 2.8. */
.stApp :is([data-testid^=stBaseButton-primary]:enabled, [data-testid^=stBaseLinkButton-primary])
  :is(p, span), .stMultiSelect [data-tag] :is(span, button) { color: light-dark(#fff, #141830); }
/* Nor has the ink on the darker blue of a button under the pointer or in the focus: 3.2. */
.stApp :is([data-testid^=stBaseButton-primary]:enabled, [data-testid^=stBaseLinkButton-primary]):is(
  :hover, :focus-visible, :active) { background-color: light-dark(#2b3886, #a8b2f6); }
@media (max-width: 1400px) { [data-testid=stTopNavLink] > span:first-child { display: none; } } /* no page is hidden */
/* Over the header, which is as high, and below the menu of a phone. */
.door { position: fixed; z-index: 999990; inset: 0 1rem auto auto; height: 3.75rem; margin: 0;
  display: flex; align-items: center; gap: .75rem; font-size: .85rem; }
.door a { color: inherit; padding-block: .25rem; }
.stApp [class*=st-key-go_] a { padding: .3125rem .75rem; font-size: .875rem; border-radius: .7rem; background: none;
  border: 1px solid light-dark(#dde1e8, #343a46); }
.stApp [class*=st-key-go_] a * { font-weight: 400; } /* also one to the page that is open */
.stApp [class*=st-key-go_] a:is(:hover, :focus-visible) { border-color: currentColor; }
/* What is drawn elsewhere or nowhere leaves no gap above the title. */
.stMainBlockContainer .stElementContainer:has(> .stHtml > :is(.door, .drawer, script)) { position: absolute; }
/* A table that is wider than what it is in is scrolled, and covers nothing. */
[data-testid=stMarkdownContainer] table { display: block; max-width: 100%; overflow-x: auto; }
/* Long words of a wide table fit the window of a phone. */
[data-testid=stDialog] table { table-layout: fixed; width: 100%; }
[data-testid=stDialog] :is(td, th) { overflow-wrap: anywhere; }
/* A link within a sentence is not told by its colour alone: WCAG 2.2, 1.4.1. */
.stApp [data-testid=stMarkdownContainer] :is(p, li) a { text-decoration: underline; text-underline-offset: .15em; }
/* What copies a link or a command is there without a mouse over it, too. */
[data-testid=stCode]:has(.language-plaintext) > div { opacity: 1; visibility: visible; }
/* Buttons go below a name that they would squeeze. */
.stApp [data-testid=stLayoutWrapper]:has(> [class*=st-key-person_]) { min-width: min(16rem, 100%); }
.view { color: inherit !important; text-decoration: underline; overflow-wrap: anywhere; }
.st-key-design_file_text textarea { font: .8125rem/1.6 ui-monospace, 'SF Mono', Menlo, Consolas, monospace;
  white-space: pre; overflow-x: auto; }
/* Words of figures like the page's, also when the colour scheme changes; those on a bar keep their own. */
.stApp .js-plotly-plot .main-svg text:not(.bartext-inside, .hoverlayer text) {
  fill: light-dark(#11141a, #e9ebf0) !important; }
/* The lower half of an error bar is on its bar, whose colour hides the grey that is legible on the page. */
.stApp .js-plotly-plot .barlayer .errorbar path { stroke: light-dark(#11141a, #e9ebf0) !important; }
/* The words of a sheet of heatmaps keep their size, nearly: a wide one scrolls. */
[class*=st-key-explore_sheet] { overflow-x: auto; }
:is([class*=st-key-explore_sheet], .st-key-explore_stacked) img { width: 100% !important; max-width: none !important; }
.stApp [data-testid=stLayoutWrapper]:has(
  > :is(.st-key-explore_stacked, .st-key-explore_sideways, .st-key-layers_about)) { display: none; }
/* As high as the selectbox next to them, so that the labels of a row are in one line. */
.st-key-explore_look .stButtonGroup [role=radio] { min-height: 2.5rem; }
/* The one sentence of Results is read first, and what it rests on after it. */
.st-key-verdict p { font-size: 1.25rem; line-height: 1.4; font-weight: 600; text-wrap: pretty; }
.st-key-verdict_tests p { font-size: .9rem; }
.stCheckbox label { min-height: 1.5rem; align-items: center; } /* targets of 24 px: WCAG 2.2, 2.5.8 */
.stApp .stMultiSelect input[role=combobox] { min-width: 1.5rem; } /* next to choices that leave less */
@media (max-width: 640px) { /* the image first, then how it is drawn; what chooses it is in a drawer */
  .st-key-explore_columns [data-testid=stColumn]:first-child:has(.st-key-explore_controls) { order: 2; }
  .stVerticalBlock > :has(~ [data-testid=stLayoutWrapper] > .st-key-explore_look) { order: -2; }
  [data-testid=stLayoutWrapper]:has(> :is(.st-key-explore_same, .st-key-explore_heatmap)) { order: -1; }
  [data-testid=stLayoutWrapper]:has(> .st-key-explore_controls) { position: absolute; }
  .stApp [data-testid=stLayoutWrapper]:has(
    > :is(.st-key-explore_stacked, .st-key-explore_sideways, .st-key-layers_about)) { display: flex; }
  [data-testid=stLayoutWrapper]:has(> [class*=st-key-explore_sheet]):has(
    + [data-testid=stLayoutWrapper] > .st-key-explore_stacked) { display: none; }
  .stApp h1 { font-size: 1.75rem; padding-block: .5rem; }
  .st-key-explore_about { display: none; } /* the image is worth more of a small screen */
  .st-key-view button { padding-inline: .45rem; font-size: .75rem; } /* seven views in two rows */
  .st-key-view button p { font-size: inherit; }
  [data-testid=stExpandSidebarButton]::after { content: "Menu" / ""; font-size: .85rem; }
  .stCheckbox label :is(.stMarkdownEllipsis, p) { white-space: normal; overflow: visible; }
  /* Always shown on a touch screen, over the legend and the title; the tools for a region have room above it. */
  .stApp :not([class*=st-key-region-drawn] *) > .modebar-container > .modebar { display: none; }
  [data-testid=stTable] :is(th, td) { padding: .3rem .2rem !important; font-size: .7rem; }
}
"""
SHEET_WIDTHS = (1084, *range(374, 1873, 214))
"""Widths of sheets of heatmaps, px: of many methods in lines, and of one to eight columns."""
SHRINKING = 0.98
"""Of its width, to which a sheet shrinks before it scrolls: five methods next to each other fit 1440 px."""
STYLE += "".join(f".st-key-explore_sheet_{px} img {{ min-width: {SHRINKING * px:.0f}px; }}\n" for px in SHEET_WIDTHS)
STYLE += "</style>"
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
        "Heatmaps by many methods, and how reliable each is.",
    ),
    "library": Page(
        "Models & images",
        "add_photo_alternate",
        "dashboard.library.page",
        "Bring your own images",
        "And a network of your own, or use the built-in ones.",
    ),
    "design": Page(
        "Design",
        "edit_note",
        "dashboard.design.page",
        "Design a study",
        "Choose images, explanations and plan; preview a trial.",
    ),
    "power": Page(
        "Power",
        "calculate",
        "dashboard.power.page",
        "Plan your sample size",
        "Power and cost by the number of participants.",
    ),
    "studies": Page(
        "Studies",
        "science",
        "dashboard.studies.page",
        "Collect responses",
        "Build, check and preview a study; open it by a link.",
    ),
    "monitor": Page("Monitor", "monitoring", "dashboard.monitor.page"),
    "results": Page(
        "Results",
        "bar_chart",
        "dashboard.results.page",
        "See the results",
        "Mixed models, tests in plain language, and figures.",
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
