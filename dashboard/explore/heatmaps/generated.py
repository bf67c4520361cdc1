"""The nearest image to this one that a generator can draw with another prediction."""

from __future__ import annotations

from typing import Literal

import streamlit as st
import torch
from torch import Tensor

from core.network.classifier import Classifier
from core.robustness.manifold import GeneratedCounterfactual, Manifold, find_on_manifold
from core.types import Progress
from dashboard.explore.images import ClassifiedImage
from dashboard.shared.cache import Gallery
from dashboard.shared.keys import digest, tensor_digest
from dashboard.shared.live import draw_when_ready, get_result
from dashboard.shared.messages import escape_markdown
from dashboard.shared.tasks import Task
from inquiry.concepts.interventions import draw_rows
from inquiry.counterfactuals.generated import EPOCHS, KEPT, LATENT, describe_generated, draw_generated, learn_manifold

BIND: Literal["query-params"] = "query-params"
MOST = 600
"""Images of the set from which the generator is learned at most."""
CAPTIONS = "The image", "Its reconstruction", "The nearest drawn image with another prediction"


def show(seen: ClassifiedImage, gallery: Gallery, seed: int) -> None:
    """Ask whether to learn a generator, and show the nearest image that it draws with another prediction."""
    wanted = st.toggle(
        "Draw the nearest image with another prediction",
        key="generated",
        bind=BIND,
        help=f"A variational autoencoder learns to draw images like up to {MOST} of this set, which takes minutes. It "
        f"is refused unless its reconstructions keep the prediction of {KEPT:.0%} of those held out.",
    )
    if not wanted:
        return
    learned = make_manifold_task(seen.classifier, gallery, seed)
    manifold: Manifold | None = get_result(learned, "_manifold")
    if manifold is not None:
        task = make_generated_task(seen.classifier, manifold, learned.key, seen.inputs)
        draw_when_ready(task, lambda counterfactual: _show_found(seen, counterfactual), "_generated")


def make_manifold_task(classifier: Classifier, gallery: Gallery, seed: int) -> Task:
    """Return the task that learns a generator from some images of a set."""
    images = gallery.images

    def compute(progress: Progress) -> Manifold:
        rows = draw_rows(len(images), seed, MOST)
        inputs = torch.stack([classifier.preprocess(images.open(int(row))) for row in rows])
        return learn_manifold(classifier, inputs, seed=seed, progress=progress)[0]

    settings = f"{MOST}|{EPOCHS}|{LATENT}|{seed}"
    return Task(digest("manifold", classifier.fingerprint, images.digest, settings), compute)


def make_generated_task(classifier: Classifier, manifold: Manifold, learned: str, inputs: Tensor) -> Task:
    """Return the task that finds the nearest drawn image for an input (C, H, W); ``learned`` is its generator's key."""

    def compute(_: Progress) -> GeneratedCounterfactual:
        return find_on_manifold(classifier, manifold, inputs)

    return Task(digest("generated", learned, tensor_digest(inputs)), compute)


def _show_found(seen: ClassifiedImage, counterfactual: GeneratedCounterfactual) -> None:
    drawn = draw_generated(seen.classifier, seen.inputs, counterfactual)
    for place, caption, image in zip(st.columns(3), CAPTIONS, drawn, strict=True):
        place.image(image, caption=caption, width="stretch", alt=caption)
    names = seen.classifier.names.short
    st.markdown(escape_markdown(describe_generated(counterfactual, names)))
