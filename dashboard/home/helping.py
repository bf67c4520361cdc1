"""Help: the way from an image to a result, and where the documentation is."""

from __future__ import annotations

import streamlit as st

from study.workspace.workspace import ROOT, home

STEPS = """
1. **Explore**: choose a classifier and images, look at predictions and heatmaps, and find the images on which it errs.
2. **Design**: choose images, explanations, procedure and plan of a study; it is written as a study file.
3. **Power**: find the number of participants that your study needs, and what it costs.
4. **Studies**: check and build a study, look at every trial, preview it as a participant, open it, copy its link.
5. **Monitor**: follow a running study without seeing its outcomes; pause and close it.
6. **Results**: what the study found, with the checks of every model, and the report.

**Models & images** adds networks and your own images to the workspace, and matches labels to a network's classes.
**Teaching** shows how the examples of a trial were chosen.
"""


def page() -> None:
    """Draw the page."""
    st.title("Help", anchor=False)
    st.markdown(STEPS)
    st.header("Documentation", anchor=False)
    if (ROOT / "docs" / "_build" / "index.html").is_file():
        st.markdown("The documentation is at [/docs](/docs/index.html): how-to guides, concepts, reference.")
    else:
        st.markdown("The documentation website is not built on this machine yet. To build and open it:")
        st.code("python foretell.py docs", language=None)
        st.markdown(f"The same pages are Markdown files in `{ROOT / 'docs'}`; begin with `start.md`.")
    st.header("When something does not work", anchor=False)
    st.markdown("This command checks the installation and the workspace, and names what to correct:")
    st.code("python foretell.py doctor", language=None)
    st.caption(f"Everything you create is in the workspace, the folder `{home()}`.")
