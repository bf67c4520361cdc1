"""The guides on the page Help: found by their titles, and read without leaving Foretell."""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePosixPath
from posixpath import normpath

import streamlit as st

from dashboard.shared import links
from study.workspace.workspace import ROOT

FOLDERS = ("how-to", "", "reference")
"""Of ``docs``, in the order in which their guides are offered."""
FIRST = "first-heatmaps"
_LINK = re.compile(r"\]\(([^)\s#:]+)\.(?:md|ipynb)(?:#[\w-]+)?\)")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")


@cache
def list_guides() -> dict[str, str]:
    """List the titles of the guides by their paths in ``docs`` without the ending; none in an installed package."""
    guides = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / "docs" / folder).glob("*.md")):
            title = file.read_text(encoding="utf-8").partition("\n")[0]
            if title.startswith("# ") and file.stem != "README":
                guides[f"{folder}/{file.stem}".lstrip("/")] = title.removeprefix("# ")
    return guides


def show_guides() -> None:
    """Draw the choice of a guide, which a link can name, and the guide."""
    guides = list_guides()
    if not guides:
        st.caption("The guides are not part of this installation.")
        return
    names = sorted(guides, key=lambda name: name != FIRST)
    chosen = links.selectbox(
        "Search the guides", names, FIRST, key="guide", what="guide", format_func=guides.__getitem__, width=560
    )
    links.show()
    st.header(guides[chosen], anchor=False)
    st.markdown(read_guide(chosen))


def read_guide(name: str) -> str:
    """Read a guide below its title: links to other guides open them here, images of the website are left out."""
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")

    def link_guide(match: re.Match[str]) -> str:
        path = normpath(PurePosixPath(name).parent / match[1])
        return f"](/help?guide={path})" if path in list_guides() else f"](/docs/{path}.html)"

    return _LINK.sub(link_guide, _IMAGE.sub("", text.partition("\n")[2]))
