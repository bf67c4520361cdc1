"""Help: the way from an image to a result, the guides, and a check of the installation."""

from __future__ import annotations

import subprocess
import sys

import streamlit as st

from core.names import upper_first
from dashboard.home import guides
from dashboard.shared import links, service
from dashboard.shared.messages import show_errors
from study.collection.access.permissions import Permission
from study.workspace.workspace import ROOT, home

STEPS = {
    "explore": ("Explore", "predictions and heatmaps of a network, and where it errs"),
    "library": ("Models & images", "networks and images of your own"),
    "design": ("Design", "images, explanations, procedure and plan of a study"),
    "power": ("Power", "how many participants it needs, and what they cost"),
    "studies": ("Studies", "build, preview and open it, and copy its link"),
    "monitor": ("Monitor", "follow it, blinded; pause and close it"),
    "results": ("Results", "what it found, the checks of every model, and the report"),
    "teaching": ("Teaching", "how the examples of a trial were chosen"),
}
"""The pages in the order of a study."""
PATIENCE_S = 120.0


def page() -> None:
    """Draw the page."""
    st.title("Help", anchor=False)
    guided, aside = st.columns([2, 1], gap="large")
    with guided, show_errors():
        guides.show_guides()
    with aside:
        _show_steps()
        with show_errors():
            _offer_check()
        if (ROOT / "docs" / "_build" / "index.html").is_file():
            st.markdown("The guides as a website: [/docs](/docs/index.html).")
        else:
            st.markdown(":small[The guides as a website: `python foretell.py docs`]")
        st.caption(f"Everything you create is in the workspace, the folder `{home()}`.")


def _show_steps() -> None:
    """Draw the pages with what each is for."""
    st.header("From an image to a result", anchor=False)
    for page, (title, purpose) in STEPS.items():
        with st.container(gap=None):
            links.show_link(title, page, place="help")
            st.caption(upper_first(purpose))


def _offer_check() -> None:
    """Draw the button that checks the installation, for those who administer it."""
    st.header("When something does not work", anchor=False)
    if service.get_acting_researcher().may(Permission.ADMINISTER):
        if st.button("Check this installation", icon=":material/stethoscope:"):
            with st.spinner("Checking …"):
                st.code(check_installation(), language=None, wrap_lines=True)
        st.caption("Checks packages, workspace and settings, and names what to correct.")
    st.markdown(":small[In a terminal: `python foretell.py doctor`]")


def check_installation() -> str:
    """Run ``doctor`` in a process of its own, as a terminal does, and return what it says."""
    package = __package__.removesuffix(".home")  # an installed one has a prefix
    command = [sys.executable, "-m", f"{package}.cli", "doctor"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return (done.stdout + done.stderr).strip()
