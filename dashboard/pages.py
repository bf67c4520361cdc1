"""The researcher's pages. Views are imported when they are opened: the first page does not wait for torch."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

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
  [data-testid=stTable] :is(th, td) { padding: .3rem .2rem !important; font-size: .7rem; }
}
</style>"""
LEAVE = '<p class="door"><a href="/login" target="_self">Log out</a></p>'


def _explore() -> None:
    from dashboard.explore import page as explore

    explore.page()


def _studies() -> None:
    from dashboard.studies import page as studies

    studies.page()


def _monitor() -> None:
    from dashboard.monitor import page as monitor

    monitor.page()


def _teaching() -> None:
    from dashboard.teaching import page as teaching

    teaching.page()


def _power() -> None:
    from dashboard.power import page as power

    power.page()


def _results() -> None:
    from dashboard.results import page as results

    results.page()


def main() -> None:
    """All pages, and the one that is open."""
    doors = {
        "explore": st.Page(_explore, title="Explore", url_path="explore", icon=":material/image_search:"),
        "studies": st.Page(_studies, title="Studies", url_path="studies", icon=":material/science:"),
        "monitor": st.Page(_monitor, title="Monitor", url_path="monitor", icon=":material/monitoring:"),
        "teaching": st.Page(_teaching, title="Teaching", url_path="teaching", icon=":material/school:"),
        "power": st.Page(_power, title="Power", url_path="power", icon=":material/calculate:"),
        "results": st.Page(_results, title="Results", url_path="results", icon=":material/bar_chart:"),
    }

    def start() -> None:
        from dashboard.home import page as home

        home.page(doors)

    st.set_page_config(page_title="Foretell", page_icon=str(ICON), layout="wide")
    st.html(STYLE)
    warming.begin()
    home = st.Page(start, title="Home", url_path="", default=True, icon=":material/home:")
    st.navigation([home, *doors.values()], position="top").run()
    st.html(LEAVE)
    warming.finish()


if __name__ == "__main__":  # a process spawned beside the pages imports this file too, and is no page
    main()
