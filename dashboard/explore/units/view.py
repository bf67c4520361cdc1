"""What activates a unit: images synthesised for it, and the images of a set that drive it most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import streamlit as st

from core.drawing.sheet import encode_png
from core.errors import ForetellError
from core.names import format_name, upper_first
from core.network.classifier import Classifier
from core.units.deep_belief import list_sampled_layers
from core.units.maximise import MaximisedImages, Parameterisation
from core.units.unit import Unit, find_layer_shape
from dashboard.explore import figures
from dashboard.explore.heatmaps import downloads
from dashboard.explore.parameters import MOST_SEED
from dashboard.explore.units import concepts, effects
from dashboard.explore.units.jobs import make_exemplars_task, make_sampling_task, make_synthesis_task
from dashboard.shared import files, links
from dashboard.shared.jobs import Job
from dashboard.shared.keys import digest
from dashboard.shared.live import JobCollector, describe_state, draw_live, is_held
from dashboard.shared.messages import escape_markdown
from data.types import ImageSet
from inquiry.concepts.interventions import draw_rows
from inquiry.units import sampled_units, units
from inquiry.units.exemplars import SAME_PROJECTION, Exemplars
from inquiry.units.sampled_units import HOW, SampledQuery, SampledUnit, render_files
from inquiry.units.unit_sheets import Tile, drop_projections, tile_exemplars, tile_maximised
from inquiry.units.units import VisualisationSettings

BIND: Literal["query-params"] = "query-params"
CLASS, CHANNEL = KINDS = ("A class", "A channel")
MOST_STARTS, MOST_STEPS = 16, 4096
SAMPLED_FILES = {
    "png": ("Images (PNG)", "image/png"),
    "npz": ("Values (NPZ)", "application/octet-stream"),
    "json": ("Metadata (JSON)", "application/json"),
}
Offer = Callable[[], None]
FEW, FEW_STEPS = 200, 32
"""Images and steps of an example that is computed at once where all would take long."""
SYNTHESISED_PX, EXEMPLAR_PX = 170, (250, 340)
"""Widths on the page, px, of two and of three parts: four, three and two side by side, on a phone two and one."""


def choose_unit(classifier: Classifier) -> Unit:
    """Choose a class, or a channel of a layer."""
    kind = st.segmented_control("Unit", KINDS, default=CLASS, required=True, key="unit", bind=BIND)
    if kind == CLASS:
        names = classifier.names.short
        links.update_classes("unit.class", classifier.names)
        return Unit(names.index(st.selectbox("Class", names, key="unit.class", bind=BIND)))
    layers = classifier.layers
    layer = st.selectbox("Layer", layers, len(layers) // 2, key="unit.layer", bind=BIND)
    channel = int(st.number_input("Channel", 0, step=1, key="unit.channel", bind=BIND))
    with suppress(ForetellError):  # `show` reports it in place of the images
        shape = _shape(classifier, layer)
        places = f", each with {shape[1]} × {shape[2]} positions" if len(shape) == 3 else ""
        st.caption(f"Channels 0 to {shape[0] - 1}{places}.")
    return Unit(channel, layer)


def _shape(classifier: Classifier, layer: str) -> tuple[int, ...]:
    return _load_layer_shape(digest(classifier.fingerprint, layer), classifier, layer)


@st.cache_data(max_entries=500, show_spinner=False)
def _load_layer_shape(key: str, _classifier: Classifier, _layer: str) -> tuple[int, ...]:  # noqa: ARG001
    return find_layer_shape(_classifier, Unit(0, _layer))


def choose_settings(classifier: Classifier, unit: Unit) -> VisualisationSettings | SampledQuery:
    """Choose how images are synthesised; units of a deep belief network can be sampled from, too."""
    sampled = unit.layer in _load_sampled_layers(classifier.fingerprint, classifier)
    how = st.segmented_control(
        "Parameterisation",
        (*get_args(Parameterisation), *((HOW,) if sampled else ())),
        default="fourier",
        required=True,
        format_func=format_name,
        key="unit.how",
        bind=BIND,
        help="Fourier: waves of colour with the amplitudes of natural images, slightly shifted. "
        "MACO: waves of colour as strong as in the chosen images; what mattered less is more transparent. "
        "Pixels: any image at a fixed distance from the mean colour."
        + (" Sampled: images that the network draws while the unit is 1, next to such as Pixels." if sampled else ""),
    )
    starts = st.number_input("Starts", 1, MOST_STARTS, VisualisationSettings.starts, 1, key="unit.starts", bind=BIND)
    steps = st.number_input(
        "Steps from each", 1, MOST_STEPS, VisualisationSettings.steps, 1, key="unit.steps", bind=BIND
    )
    seed = st.number_input("Random seed", 0, MOST_SEED, 0, 1, key="seed", bind=BIND)
    if how == HOW:
        return SampledQuery(classifier.name, f"{unit.layer}:{unit.channel}", int(starts), int(steps), int(seed))
    return VisualisationSettings(how, int(starts), int(steps), int(seed))


@st.cache_data(max_entries=500, show_spinner=False)
def _load_sampled_layers(key: str, _classifier: Classifier) -> tuple[str, ...]:  # noqa: ARG001
    return list_sampled_layers(_classifier)


@dataclass(frozen=True)
class UnitJobs:
    """The jobs that synthesise and find images; None while they wait for a click.

    ``settings`` are those of ``made`` and ``searched`` the number of images of ``exemplars``: less than was asked for
    where all of it waits for a click.
    """

    classifier: Classifier
    made: Job | None
    exemplars: Job | None
    settings: VisualisationSettings | SampledQuery
    searched: int

    def result(self, job: Job | None) -> MaximisedImages | SampledUnit | Exemplars | None:
        """Return the result of a job, if it is done."""
        return job.result if job is not None and job.state == "done" else None


def show(
    classifier: Classifier, unit: Unit, settings: VisualisationSettings | SampledQuery, images: ImageSet | None
) -> None:
    """Show everything about one unit; without a set, only the synthesised images.

    Raises
    ------
    ForetellError
        A layer without channels, or a channel it has not; MACO without a set.
    """
    if unit.channel >= _shape(classifier, unit.layer)[0]:
        find_layer_shape(classifier, unit)
    st.header(escape_markdown(_capitalise(units.name_of(classifier, unit))), anchor=False)
    if isinstance(settings, VisualisationSettings) and settings.reads_images and images is None:
        raise ForetellError(f"{format_name(settings.how)} measures the spectrum of images: choose a set of images.")

    def draw(shown: UnitJobs) -> None:
        if isinstance(shown.settings, SampledQuery):
            offer = _show_sampled(shown, shown.settings)
        else:
            offer = _show_maximised(shown, unit, shown.settings)
        if images is not None:
            _show_exemplars(shown, images)
        downloads.show_downloads(offer)

    draw_live(lambda asking: _ask_for_all(asking, classifier, unit, settings, images), draw)
    if images is not None and unit.layer:
        effects.show(classifier, unit, images)
    elif images is not None:
        concepts.show(classifier, unit.channel, images)


def _ask_for_all(
    asking: JobCollector,
    classifier: Classifier,
    unit: Unit,
    settings: VisualisationSettings | SampledQuery,
    images: ImageSet | None,
) -> UnitJobs:
    exemplars, searched = _ask_for_exemplars(asking, classifier, unit, images) if images else (None, 0)
    if isinstance(settings, SampledQuery):
        made = asking(make_sampling_task(classifier, unit, settings))
        return UnitJobs(classifier, made, exemplars, settings, searched)
    made, used = _ask_for_images(asking, classifier, unit, settings, images)
    return UnitJobs(classifier, made, exemplars, used, searched)


def _ask_for_exemplars(
    asking: JobCollector, classifier: Classifier, unit: Unit, images: ImageSet
) -> tuple[Job | None, int]:
    """Ask for the top images of a set or, where all wait for a click, of a few; return the job and their number."""
    whole = make_exemplars_task(classifier, unit, images)
    job = asking(whole)
    few = images.only(draw_rows(len(images), 0, FEW)) if job is None and is_held(whole) else images
    example = make_exemplars_task(classifier, unit, few)
    if len(few) == len(images) or is_held(example):
        return job, len(images)
    return asking(example), len(few)


def _ask_for_images(
    asking: JobCollector, classifier: Classifier, unit: Unit, settings: VisualisationSettings, images: ImageSet | None
) -> tuple[Job | None, VisualisationSettings]:
    """Ask for synthesised images or, where they wait for a click, one of few steps; return job and settings."""
    whole = make_synthesis_task(classifier, unit, settings, images)
    job = asking(whole)
    few = replace(settings, starts=1, steps=min(FEW_STEPS, settings.steps))
    example = make_synthesis_task(classifier, unit, few, images)
    if job is not None or not is_held(whole) or is_held(example):
        return job, settings
    return asking(example), few


def _capitalise(text: str) -> str:
    return upper_first(text) if text.startswith("class ") else text


def _show_maximised(shown: UnitJobs, unit: Unit, settings: VisualisationSettings) -> Offer | None:
    """Show synthesised images, and return what offers their files once they are made."""
    st.markdown(f"**Synthesised images**, each from a random start, after {settings.steps:,} steps")
    drawn = shown.result(shown.made)
    if not isinstance(drawn, MaximisedImages):
        st.info(escape_markdown(describe_state(shown.made)))
        return None
    _tiles(tile_maximised(drawn), "Synthesised for the unit", SYNTHESISED_PX)
    st.caption(f"{units.describe_activation(shown.classifier, unit)} {units.describe_opacity(drawn)}".strip())
    _warn(drawn.warnings)
    return lambda: _files(shown, drawn, settings)


def _show_sampled(shown: UnitJobs, query: SampledQuery) -> Offer | None:
    """Show what is drawn with a unit clamped, and return what offers the files once it is drawn."""
    st.markdown("**Images drawn with the unit clamped to 1**")
    drawn = shown.result(shown.made)
    if not isinstance(drawn, SampledUnit):
        st.info(escape_markdown(describe_state(shown.made)))
        return None
    _tiles(sampled_units.tile_samples(shown.classifier, drawn), "Drawn with the unit clamped", SYNTHESISED_PX)
    st.caption(escape_markdown(f"First {sampled_units.describe_samples(drawn)}"))
    _warn(sampled_units.warn(drawn.samples))
    st.markdown("**Images that maximise it**, each from a random start")
    _tiles(sampled_units.tile_ascents(shown.classifier, drawn), "Synthesised for the unit", SYNTHESISED_PX)
    st.caption(units.describe_activation(shown.classifier, drawn.unit))
    return lambda: _offer_sampled(shown.classifier, drawn, query)


def _show_exemplars(shown: UnitJobs, images: ImageSet) -> None:
    part = "" if shown.searched == len(images) else f"{shown.searched:,} drawn at random from "
    st.markdown(f"**Top images** of {part}{len(images):,}")
    there = shown.result(shown.exemplars)
    if not isinstance(there, Exemplars):
        st.info(escape_markdown(describe_state(shown.exemplars)))
        return
    tiles, cells = tile_exemplars(there), units.describe_exemplars(there)
    width = max(width for width in EXEMPLAR_PX if width < tiles[0].image.width)
    _warn(there.warnings)
    if SAME_PROJECTION in there.warnings:
        tiles, cells = drop_projections(tiles), f"{cells} The projection, which is the same, is with the first alone."
    _tiles(tiles, "Top image of the unit", width)
    st.caption(escape_markdown(cells))


def _tiles(tiles: Sequence[Tile], alt: str, width: int) -> None:
    """Draw tiles side by side: the widest at ``width``, and a part of it on the same scale."""
    widest = max(tile.image.width for tile in tiles)
    with st.container(horizontal=True):
        for tile in tiles:
            text = escape_markdown(tile.words).replace("/", "/\u200b")  # a long id breaks between its folders
            across = min(width, round(width * tile.image.width / widest))
            image = figures.encode_for_page(tile.image, across)
            st.image(image, caption=text, width=across, alt=f"{alt}: {tile.words}", output_format="PNG")


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        st.warning(escape_markdown(warning))


def _files(shown: UnitJobs, drawn: MaximisedImages, how: VisualisationSettings) -> None:
    there = shown.result(shown.exemplars)
    top = there if isinstance(there, Exemplars) else None
    of, name = shown.classifier, units.stem(shown.classifier, drawn)
    files.offer_download(
        "Synthesised images (PNG)",
        lambda: encode_png(units.draw_maximised_sheet(of, drawn, how)),
        f"{name}.png",
        "image/png",
    )
    if top is not None:
        files.offer_download(
            "Top images (PNG)", lambda: encode_png(units.draw_exemplar_sheet(of, top)), f"{name}.top.png", "image/png"
        )
    files.offer_download("Inputs (NPZ)", lambda: units.npz(drawn, top), f"{name}.npz", "application/octet-stream")
    files.offer_download(
        "Metadata (JSON)", lambda: units.facts_text(of, drawn, how, top), f"{name}.json", "application/json"
    )


def _offer_sampled(classifier: Classifier, drawn: SampledUnit, query: SampledQuery) -> None:
    name = units.name_file(classifier, drawn.unit, HOW)

    def render(ending: str) -> bytes:
        return render_files(classifier, drawn, query)[ending]

    for ending, (label, kind) in SAMPLED_FILES.items():
        files.offer_download(label, partial(render, ending), f"{name}.{ending}", kind)
