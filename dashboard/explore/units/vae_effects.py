"""The effect of a concept on a class in images that cannot be changed: VAEs of the images draw the changed ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from core.network.classifier import Classifier
from core.types import Progress
from dashboard.shared import cache, files
from dashboard.shared.keys import digest
from dashboard.shared.live import draw_when_ready
from dashboard.shared.messages import escape_markdown
from dashboard.shared.numbers import table
from dashboard.shared.tasks import Task
from data.types import ImageSet
from inquiry.concepts.concept_results import EffectResults
from inquiry.concepts.concept_vae import EPOCHS, KEPT, LEAST_TRAININGS, TRAININGS, VaeQuery, estimate_by_vae
from study.workspace.workspace import home

BIND: Literal["query-params"] = "query-params"
MOST_TRAININGS, MOST_EPOCHS, MOST_LATENT = 20, 300, 256
WAYS = {
    "effect": "codes that images have (the estimate)",
    "decoded": "codes of no image (Dec-CaCE)",
    "reencoded": "each image's own code (EncDec-CaCE)",
    "causal": "by intervention, no VAE",
    "observed": "as observed, no VAE",
}
"""How each row of the table draws the images."""


def show(classifier: Classifier, target: int, images: ImageSet, format_concept: Callable[[str], str]) -> None:
    """Offer to learn VAEs of the images, and show the effect of a concept on the class in what they draw."""
    wanted = st.toggle(
        "Draw a concept by a VAE",
        key="vae",
        bind=BIND,
        help="For images that cannot be changed: variational autoencoders learn to draw images with and without the "
        "concept, which takes minutes, and the effect is what the prediction does between the two. Refused unless "
        f"their reconstructions keep the prediction of {KEPT:.0%} of those held out.",
    )
    if not wanted:
        return
    query = _choose_query(classifier, target, images, format_concept)
    if query is not None:
        name = classifier.names.short[target]
        draw_when_ready(make_vae_task(classifier, images, query), lambda result: _draw(result, name), "_vae")


def list_recorded(images: ImageSet) -> list[str]:
    """List the concepts whose presence a set records of each image, as the command `concepts` names them."""
    known = {name: factor for name, factor in images.factors.items() if factor.known is not None}
    return [f"{name}={value}" for name, factor in known.items() for value in factor.values]


def _choose_query(
    classifier: Classifier, target: int, images: ImageSet, format_concept: Callable[[str], str]
) -> VaeQuery | None:
    """Choose a concept that the set records, or a folder of images with it and one without, and the training."""
    recorded = list_recorded(images)
    folders = cache.list_image_sets()
    if not recorded and len(folders) < 2:
        st.info(
            "Put images that show a concept, and other images, into two image sets of the workspace "
            "(**Models & images**), each with one folder per class."
        )
        return None
    with st.form("vae_query", border=False):
        concept, others = _choose_concept(recorded, folders, format_concept)
        counts = zip(st.columns(3), _COUNTS, strict=True)
        given = {name: int(place.number_input(label, low, most, default, 1, key=f"vae.{name}", bind=BIND))
                 for place, (name, label, low, most, default) in counts}  # fmt: skip
        st.form_submit_button("Apply")
    if others == concept:
        st.info("Choose different image sets for the images with the concept and for the others.")
        return None
    name = classifier.categories[target]
    query = VaeQuery(classifier.name, name, (concept,), image_set=images.name)
    if others is not None:
        folder = cache.find_sets_folder()
        query = replace(query, concepts=(str(folder / concept),), random=str(folder / others))
    return replace(query, trainings=given["trainings"], epochs=given["epochs"], latent=given["latent"])


_COUNTS = (
    ("trainings", "VAEs", LEAST_TRAININGS, MOST_TRAININGS, TRAININGS),
    ("epochs", "Passes over the images", 1, MOST_EPOCHS, EPOCHS),
    ("latent", "Entries of the code", 1, MOST_LATENT, VaeQuery.latent),
)
"""Setting, label, smallest, largest and default value."""


def _choose_concept(
    recorded: list[str], folders: list[str], format_concept: Callable[[str], str]
) -> tuple[str, str | None]:
    if recorded:
        return st.selectbox("Concept", recorded, format_func=format_concept, key="vae.concept", bind=BIND), None
    left, right = st.columns(2)
    concept = left.selectbox("Images with the concept", folders, key="vae.folder", bind=BIND)
    return concept, right.selectbox("Other images", folders, 1, key="vae.others", bind=BIND)


def make_vae_task(classifier: Classifier, images: ImageSet, query: VaeQuery) -> Task:
    """Return the task that trains the VAEs, as `concepts --by vae` does; a run that was stopped resumes."""
    parts = home() / "cache" / "inspections"

    def compute(progress: Progress) -> EffectResults:
        return estimate_by_vae(classifier, query, images, parts, progress)

    stamps = [cache.stamp_image_set(name) for name in cache.list_image_sets()] if query.random else []
    settings = json.dumps([asdict(query), *stamps], sort_keys=True)
    return Task(digest("vae_effects", classifier.fingerprint, images.digest, settings), compute)


def list_ways(row: pd.Series) -> pd.DataFrame:
    """List the effect by each way with its limits, of one row of the command's table."""
    ways = [way for way in WAYS if np.isfinite(row[way])]
    return pd.DataFrame(
        {"drawn from": [WAYS[way] for way in ways], "effect": [row[way] for way in ways]}
        | {end: [row[f"{way}_{end}"] for way in ways] for end in ("low", "high")}
    )


def _draw(result: EffectResults, name: str) -> None:
    row = result.table.iloc[0]
    table(list_ways(row), "vae_effects")
    shown = "not checked" if np.isnan(row["shown"]) else f"{row['shown']:.0%}"
    st.caption(
        f"Change in the probability of {escape_markdown(name)} when drawn images show "
        f"{escape_markdown(str(row['concept']))}, with 95% intervals over trainings, from {row['images']:,} images. "
        f"Reconstructions keep the prediction of {row['kept']:.0%} of the held-out images (at least "
        f"{row['kept_low']:.0%}, 95% interval). Drawn images that show the concept: {shown}."
    )
    if row["warning"]:
        st.warning(escape_markdown(row["warning"]))
    report = json.dumps(result.report, indent=1, ensure_ascii=False) + "\n"
    files.offer_download("vae.json, how it was computed", lambda: report, "vae.json", "application/json")
