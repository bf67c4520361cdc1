"""Downloads: images, arrays, certificates, the script that reproduces them, and the link."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import urlsplit

import streamlit as st

from core.drawing.sheet import encode_png, render_png, render_svg
from dashboard.explore import figures
from dashboard.explore.heatmaps import certificate, reproduce
from dashboard.explore.heatmaps.sheet import draw_sheet
from dashboard.explore.source import OWN
from dashboard.explore.table import Cell, HeatmapColumn, HeatmapTable
from dashboard.shared import files, links


def show_heatmap_downloads(shown: HeatmapTable, stem: str) -> None:
    """Draw two buttons: the files of the heatmaps, and the link to this view."""
    made = any(cell.explanation is not None for _, cell in shown.cells)
    show_downloads((lambda: _files(shown, stem)) if made else None)


def show_downloads(download: Callable[[], None] | None) -> None:
    """Draw two buttons: what ``download`` draws, if anything, and the link to this view."""
    with st.container(horizontal=True):
        if download is not None:
            with st.popover("Download", icon=":material/download:"):
                download()
        # Asked for in a run of its own: the run that changes the view still holds the settings of the view before.
        with st.popover("Link", icon=":material/link:", on_change="rerun") as popover:
            if popover.open:
                st.code(make_link(), language=None, wrap_lines=True)
                own = st.session_state.get("source") == OWN
                said = "Opens this view." + (" Your own image is not in the link: it stays with you." if own else "")
                st.caption(said)


def make_link() -> str:
    """Return the address of this view."""
    parts = urlsplit(st.context.url or "")
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{links.read_query()}"


def _files(shown: HeatmapTable, stem: str) -> None:
    made = [(column, cell) for column, cell in shown.cells if cell.explanation is not None]
    script = f"{stem}.py"
    files.offer_download("Image (PNG)", lambda: encode_png(render_png(draw_sheet(shown))), f"{stem}.png", "image/png")
    files.offer_download("Image (SVG)", lambda: render_svg(draw_sheet(shown)), f"{stem}.svg", "image/svg+xml")
    if len(made) == 1:
        values = made[0][1].explanation
        assert values is not None
        files.offer_download(
            "Heatmap (NPY)", lambda: figures.encode_npy(values.map[0]), f"{stem}.npy", "application/octet-stream"
        )
    files.offer_download(
        "Heatmaps and certificates (NPZ)", lambda: reproduce.build_npz(shown), f"{stem}.npz", "application/octet-stream"
    )
    files.offer_download("Certificates (JSON)", lambda: _certificates(made), f"{stem}.json", "application/json")
    files.offer_download(
        "Python script to reproduce them", lambda: reproduce.build_script(shown, script), script, "text/x-python"
    )


def _certificates(made: list[tuple[HeatmapColumn, Cell]]) -> str:
    facts = []
    for column, cell in made:
        assert cell.certificate is not None
        facts.append(
            {"image": column.image.chosen.name}
            | json.loads(certificate.as_json(cell.certificate, cell.request.class_name))
        )
    return json.dumps(facts[0] if len(facts) == 1 else facts, indent=1, ensure_ascii=False) + "\n"
