"""What a unit of the AI answers to: pictures made for it, and the pictures of a set that drive it most."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, get_args

import streamlit as st

from core.classifier import Classifier
from core.errors import ForetellError
from core.units.maximise import Maximised, Parameterisation
from core.units.unit import Unit, known
from dashboard.explore import figures
from dashboard.explore.heatmaps import downloads
from dashboard.explore.heatmaps.cells import class_names
from dashboard.explore.parameters import MOST_SEED
from dashboard.explore.table import words
from dashboard.explore.units import concepts, effects
from dashboard.explore.units.jobs import FoundRequest, MadeRequest
from dashboard.shared import files
from dashboard.shared.jobs import Job
from dashboard.shared.keys import digest
from dashboard.shared.live import Asking, live, note
from dashboard.shared.messages import escaped
from data.types import ImageSet
from study.inquiry import units
from study.inquiry.exemplars import Exemplars
from study.inquiry.unit_sheets import Tile, found, made
from study.inquiry.units import Settings

BIND: Literal["query-params"] = "query-params"
CLASS, CHANNEL = KINDS = ("A class", "A channel")
MOST_STARTS, MOST_STEPS = 16, 4096
MADE, FOUND = 170, (250, 340)
"""Widths on the page, px, of two and of three parts: four, three and two side by side, on a phone two and one."""


def chosen_unit(classifier: Classifier) -> Unit:
    """The class, or the channel of a layer, which may have no such channel."""
    kind = st.segmented_control("Unit", KINDS, default=CLASS, required=True, key="unit", bind=BIND)
    if kind == CLASS:
        names = class_names(classifier)
        return Unit(names.index(st.selectbox("Class", names, key="unit.class", bind=BIND)))
    layers = classifier.layers
    layer = st.selectbox("Layer", layers, len(layers) // 2, key="unit.layer", bind=BIND)
    channel = int(st.number_input("Channel", 0, step=1, key="unit.channel", bind=BIND))
    with suppress(ForetellError):  # `show` says it, where the pictures would be
        shape = _shape(classifier, layer)
        places = f", each with {shape[1]} × {shape[2]} places" if len(shape) == 3 else ""
        st.caption(f"Channels 0 to {shape[0] - 1}{places}.")
    return Unit(channel, layer)


def _shape(classifier: Classifier, layer: str) -> tuple[int, ...]:
    return _known(digest(classifier.fingerprint, layer), classifier, layer)


@st.cache_data(max_entries=500, show_spinner=False)
def _known(key: str, _classifier: Classifier, _layer: str) -> tuple[int, ...]:  # noqa: ARG001
    return known(_classifier, Unit(0, _layer))


def chosen_settings() -> Settings:
    """How pictures are made for it."""
    how = st.segmented_control(
        "Drawn as",
        get_args(Parameterisation),
        default="fourier",
        required=True,
        format_func=words,
        key="unit.how",
        bind=BIND,
        help="Fourier: waves of colour as strong as in natural pictures, shown a little moved. "
        "Pixels: any picture at one distance from the mean colour.",
    )
    starts = st.number_input("Starts", 1, MOST_STARTS, Settings.starts, 1, key="unit.starts", bind=BIND)
    steps = st.number_input("Steps from each", 1, MOST_STEPS, Settings.steps, 1, key="unit.steps", bind=BIND)
    seed = st.number_input("Seed of the draws", 0, MOST_SEED, 0, 1, key="seed", bind=BIND)
    return Settings(how, int(starts), int(steps), int(seed))


@dataclass(frozen=True)
class Shown:
    """As far as it is there: the jobs that make and find pictures, None where they wait for a click."""

    classifier: Classifier
    settings: Settings
    made: Job | None
    found: Job | None

    def result(self, job: Job | None) -> Maximised | Exemplars | None:
        """What came of a job, if it is done."""
        return job.result if job is not None and job.state == "done" else None


def show(classifier: Classifier, unit: Unit, settings: Settings, images: ImageSet | None) -> None:
    """Everything about one unit; without a set, only what is made for it.

    Raises
    ------
    ForetellError
        A layer without channels, or a channel it has not.
    """
    if unit.channel >= _shape(classifier, unit.layer)[0]:
        known(classifier, unit)
    st.subheader(escaped(_capital(units.name_of(classifier, unit))), anchor=False)

    def collect(asking: Asking) -> Shown:
        job = asking(MadeRequest(classifier, unit, settings))
        return Shown(classifier, settings, job, asking(FoundRequest(classifier, unit, images)) if images else None)

    def draw(shown: Shown) -> None:
        _made(shown, unit)
        if images is not None:
            _found(shown, images)
        drawn = shown.result(shown.made)
        downloads.offered((lambda: _files(shown, drawn)) if isinstance(drawn, Maximised) else None)

    live(collect, draw)
    if images is not None and unit.layer:
        effects.show(classifier, unit, images)
    elif images is not None:
        concepts.show(classifier, unit.channel, images)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith("class ") else text


def _made(shown: Shown, unit: Unit) -> None:
    st.markdown("**Made for it**, each from a random start")
    drawn = shown.result(shown.made)
    if not isinstance(drawn, Maximised):
        st.info(escaped(note(shown.made)))
        return
    _tiles(made(drawn), "Made for the unit", MADE)
    st.caption(units.reached(shown.classifier, unit))
    _warn(drawn.warnings)


def _found(shown: Shown, images: ImageSet) -> None:
    st.markdown(f"**Found for it** among the {len(images):,} pictures")
    there = shown.result(shown.found)
    if not isinstance(there, Exemplars):
        st.info(escaped(note(shown.found)))
        return
    tiles = found(there)
    _tiles(tiles, "Found for the unit", max(width for width in FOUND if width < tiles[0].image.width))
    st.caption(escaped(units.looked_through(there)))
    _warn(there.warnings)


def _tiles(tiles: Sequence[Tile], alt: str, width: int) -> None:
    with st.container(horizontal=True):
        for tile in tiles:
            text = escaped(tile.words)
            st.image(tile.image, caption=text, width=width, alt=f"{alt}: {tile.words}", output_format="PNG")


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        st.warning(escaped(warning))


def _files(shown: Shown, drawn: Maximised) -> None:
    there = shown.result(shown.found)
    top = there if isinstance(there, Exemplars) else None
    of, how, name = shown.classifier, shown.settings, units.stem(shown.classifier, drawn)
    files.file(
        "Pictures made (PNG)",
        lambda: figures.png(units.made_sheet(of, drawn, how)),
        f"{name}.png",
        "image/png",
    )
    if top is not None:
        files.file(
            "Pictures found (PNG)",
            lambda: figures.png(units.found_sheet(of, top)),
            f"{name}.top.png",
            "image/png",
        )
    files.file("Inputs (NPZ)", lambda: units.npz(drawn, top), f"{name}.npz", "application/octet-stream")
    files.file("Facts (JSON)", lambda: units.facts_text(of, drawn, how, top), f"{name}.json", "application/json")
