"""The question `recognition` of `inquiry.layers`: do layers learned without labels recognise the classes?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.concepts.deconvolution import Decomposition, LayerStack, add_layer, decompose, draw_filters, project_strongest
from core.concepts.pyramid import Maps, build_pyramids, intersect_histograms, select_whole
from core.concepts.support_vectors import FOLDS, classify_by_kernel
from core.errors import ForetellError
from core.shares import compare_paired, share_of
from core.types import Progress
from inquiry.concepts.interventions import draw_rows
from inquiry.layers.images.decomposition import (
    Epochs,
    ErrorWeight,
    FilterCounts,
    FilterSide,
    ImageSide,
    estimate_learning,
    list_settings,
    open_squares,
    remove_local_mean,
)
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import TableWords, Topic, layer_question
from study import plots

LEAST = 2 * FOLDS
"""Images of each class, of which a third is held out."""
MOST_LEVELS = 4
BLOCK = 30
"""Images that are taken apart at a time."""
COLUMNS = ("features", "accuracy", "low", "high", "chance", "random", "learning", "learning_low", "learning_high",
           "without_pyramid", "position", "position_low", "position_high", "penalty", "images", "note")  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True)
class LabelledImages:
    """Training images first, then the held-out ones.

    Attributes
    ----------
    contrast
        The images (N, 3, S, S) without their local mean.
    labels
        (N,), numbers of the classes that occur.
    training
        Number of training images.
    """

    contrast: Tensor
    labels: NDArray[np.int64]
    training: int

    @property
    def held_out(self) -> NDArray[np.int64]:
        """Labels of the held-out images."""
        return self.labels[self.training :]

    @cached_property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1


@dataclass(frozen=True)
class Recognition:
    """Whether each held-out image was recognised (bool), and the penalty that was chosen."""

    right: NDArray[np.bool_]
    penalty: float


def plot_recognition(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy by features, next to that with random filters and without a pyramid, and chance."""
    figure = go.Figure()
    compared = {"accuracy": "with the pyramid", "random": "random filters", "without_pyramid": "without the pyramid"}
    for k, (name, label) in enumerate(compared.items()):
        error = {"type": "data", "array": table["high"] - table["accuracy"],
                 "arrayminus": table["accuracy"] - table["low"], "color": plots.INK, "thickness": 1}  # fmt: skip
        figure.add_bar(x=table["features"], y=table[name], name=label, marker={"color": plots.PALETTE[k]},
                       error_y=error if name == "accuracy" else None)  # fmt: skip
    figure.add_hline(y=float(table["chance"].iloc[0]), line=plots.DOTTED)
    return plots.apply_layout(figure, "Accuracy", percent=True).update_layout(barmode="group")


@layer_question(
    topic=Topic.IMAGE_SET,
    asks="classes without the network",
    reading=(
        "Accuracy on held-out images, with 95% intervals. The dotted line is chance. Learning, Position: "
        "what learned filters and the cells of the pyramid gain, paired. The network is not used."
    ),
    publications={"Zeiler, Taylor & Fergus 2011": "https://doi.org/10.1109/ICCV.2011.6126474"},
    labels={"parts": "Activations that are projected"},
    table=TableWords(
        headings={"random": "Random filters"},
        shares="random|learning|without_pyramid|position",
        printed=("features", "accuracy", "low", "high", "chance", "random", "without_pyramid"),
        notes_are_results=True,
    ),
    figure=plot_recognition,
    cost=estimate_learning(0.22, 32),
)
def recognition(
    inspected: LayerInspection,
    progress: Progress,
    *,
    filters: FilterCounts = "12,24",
    images: int = 300,
    learned: int = 90,
    side: ImageSide = 32,
    size: FilterSide = 5,
    weight: ErrorWeight = 2.0,
    epochs: Epochs = 8,
    words: int = 100,
    levels: int = 3,
    parts: int = 20,
) -> pd.DataFrame:
    """Recognise the classes of a set from layers of filters learned without labels, by spatial pyramids.

    Zeiler et al. 2011, section on object recognition: the layers are those of the question ``decomposition``, learned
    from some of the training images (two thirds of each class); the network is not asked. Of a higher layer, the
    largest activations of an image are each projected down to the feature maps of layer 1. Patches of these are
    described as by SIFT, assigned to visual words, and counted in the cells of a pyramid (Lazebnik et al. 2006). A
    support vector machine with the histogram intersection kernel learns the
    classes of the training images. ``accuracy`` is that on held-out images, with its 95% interval. ``random`` is the
    accuracy with random filters in that layer, and ``learning`` what learned ones gain. ``without_pyramid`` is that
    with words counted in the whole image alone, and ``position`` what the cells gain. The rows ``patches of pixels``
    (the same with pixels for feature maps) and ``pixels`` (a linear machine) are for comparison. ``note`` warns where
    layers do not help.

    Parameters
    ----------
    images
        Largest number of images that are drawn; two thirds of each class are training images.
    learned
        Largest number of training images that filters are learned from.
    words
        Number of visual words that patches are assigned to.
    levels
        Levels of the pyramid, 1 to 4: words are counted in 1 x 1, 2 x 2, 4 x 4 and 8 x 8 cells.
    parts
        Number of the largest activations of an image that are projected down to layer 1, of each higher layer.
    """
    settings = list_settings(filters, size, weight, epochs)
    for name, value in {"words": words, "levels": levels, "parts": parts, "learned": learned}.items():
        if value < 1:
            raise ForetellError(f"{name}={value}: give a whole number of at least 1.")
    if levels > MOST_LEVELS:
        raise ForetellError(f"levels={levels}: choose at most {MOST_LEVELS}; cells would be smaller than a patch.")
    shown = split_images(inspected, images, side)
    drawn = torch.randperm(shown.training, generator=inspected.generator())[:learned]
    stack = LayerStack()
    for own in settings:
        stack = add_layer(stack, shown.contrast[drawn], own, generator=inspected.generator(), progress=progress)
    kernels = build_kernels(inspected, shown, stack, (words, levels, parts), progress)
    rows = [describe_features(inspected, shown, name, one) for name, one in kernels.items()]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def split_images(inspected: LayerInspection, most: int, side: int) -> LabelledImages:
    """Draw at most so many images, hold out a third of each class, and open them.

    Raises
    ------
    ForetellError
        Fewer than two classes, or too few images of one.
    """
    chosen = np.array(draw_rows(len(inspected.images), inspected.request.seed, most), dtype=np.int64)
    present, labels = np.unique(np.asarray(inspected.images.labels)[chosen], return_inverse=True)
    counts = np.bincount(labels)
    if len(present) < 2:
        raise ForetellError("Images of one class alone: there is nothing to tell apart. Give a set with more classes.")
    if counts.min() < LEAST:
        rarest = inspected.images.categories[int(present[counts.argmin()])]
        raise ForetellError(
            f"{counts.min()} images of {rarest} among the {len(chosen)} drawn are too few to learn from and to judge "
            f"by: give {LEAST} or more of each class, or draw more of the set."
        )
    mixed = torch.randperm(len(chosen), generator=inspected.generator()).numpy()
    classes = [mixed[labels[mixed] == k] for k in range(len(present))]
    out = np.concatenate([own[: round(len(own) / 3)] for own in classes])
    order = np.concatenate([np.setdiff1d(mixed, out), np.sort(out)])
    contrast, _ = remove_local_mean(open_squares(inspected.images, chosen[order].tolist(), side))
    return LabelledImages(contrast, labels[order], len(order) - len(out))


@dataclass(frozen=True)
class Kernels:
    """The kernels (N, N) of all images by one kind of features.

    ``random`` is that with random filters, ``whole`` that without a pyramid, where there is one.
    """

    own: Tensor
    random: Tensor | None = None
    whole: Tensor | None = None


def build_kernels(
    inspected: LayerInspection,
    shown: LabelledImages,
    stack: LayerStack,
    sizes: tuple[int, int, int],
    progress: Progress,
) -> dict[str, Kernels]:
    """Build the kernels of each layer, of all layers, and of pixels; ``sizes`` are words, levels and parts."""
    y, (words, levels, parts) = shown.contrast, sizes

    def count_words(maps: Maps) -> Tensor:
        generator = inspected.generator()
        return build_pyramids(maps, len(y), shown.training, words=words, levels=levels, generator=generator,
                              progress=progress).double()  # fmt: skip

    def compare(pyramids: Tensor, random: Tensor | None = None) -> Kernels:
        whole = select_whole(pyramids, levels) if levels > 1 else None
        others = (None if one is None else intersect_histograms(one, one) for one in (random, whole))
        return Kernels(intersect_histograms(pyramids, pyramids), *others)

    results: dict[str, Kernels] = {}
    known: list[Decomposition] | None = None
    for layer in range(len(stack.filters)):
        lower = replace(stack, filters=stack.filters[: layer + 1], settings=stack.settings[: layer + 1])
        random = draw_random_layer(lower, inspected.generator())
        learned, drawn = (decompose_blocks(y, one, known, progress) for one in (lower, random))
        pyramids = (
            count_words(partial(_project, one, of, layer, parts)) for one, of in ((learned, lower), (drawn, random))
        )
        results[f"layer {layer + 1}"] = compare(*pyramids)
        known = learned
    if len(results) > 1:
        results["all layers"] = average_kernels(list(results.values()))
    results["patches of pixels"] = compare(count_words(lambda b: y[b : b + 1]))
    pixels = y.flatten(1).double()
    linear = pixels @ pixels.T
    return results | {"pixels": Kernels(linear / linear.diagonal().mean())}


def decompose_blocks(
    y: Tensor, stack: LayerStack, known: list[Decomposition] | None, progress: Progress
) -> list[Decomposition]:
    """Decompose images (N, C, H, W) in blocks of `BLOCK`; ``known`` holds the lower layers of each block, if any."""
    blocks: tuple[Tensor, ...] = torch.split(y, BLOCK)
    results: list[Decomposition] = []
    for k, block in enumerate(blocks):
        results.append(decompose(block, stack, known[k] if known else None))
        progress(k + 1, len(blocks), f"activations of layer {len(stack.filters)}")
    return results


def _project(blocks: list[Decomposition], stack: LayerStack, layer: int, parts: int, b: int) -> Tensor:
    return project_strongest(blocks[b // BLOCK], stack, layer, b % BLOCK, parts)


def draw_random_layer(stack: LayerStack, generator: torch.Generator) -> LayerStack:
    """Replace the filters of the top layer by random ones."""
    drawn = draw_filters(stack.filters[-1].shape[1], stack.settings[-1], generator)
    return replace(stack, filters=(*stack.filters[:-1], drawn))


def average_kernels(each: Sequence[Kernels]) -> Kernels:
    """Average the kernels of several kinds of features, which joins their histograms."""

    def average(kernels: list[Tensor | None]) -> Tensor | None:
        known = [one for one in kernels if one is not None]
        return torch.stack(known).mean(0) if len(known) == len(kernels) else None

    own = average([one.own for one in each])
    assert own is not None
    return Kernels(own, average([one.random for one in each]), average([one.whole for one in each]))


def describe_features(inspected: LayerInspection, shown: LabelledImages, name: str, kernels: Kernels) -> Row:
    """Return the row about one kind of features."""
    own = recognise(inspected, shown, kernels.own)
    accuracy = share_of(int(own.right.sum()), len(own.right))
    chance = np.bincount(shown.held_out).max() / len(shown.held_out)
    row: Row = {"features": name, "chance": float(chance), "penalty": own.penalty, "images": len(own.right)}
    row |= {"accuracy": accuracy.value, "low": accuracy.low, "high": accuracy.high}
    notes = []
    for kernel, of, gain in ((kernels.random, "random", "learning"), (kernels.whole, "without_pyramid", "position")):
        if kernel is None:
            continue
        other = recognise(inspected, shown, kernel).right
        row[of] = float(other.mean())
        paired = compare_paired(int((own.right & ~other).sum()), int((other & ~own.right).sum()), len(other))
        row |= {gain: paired.value, f"{gain}_low": paired.low, f"{gain}_high": paired.high}
        if of == "random" and paired.low <= 0:
            notes.append(warn_of_random(name, accuracy.value, row[of]))
    if accuracy.low <= chance:
        notes.append(f"By {name}, held-out images are recognised no better than by chance ({chance:.1%}).")
    return row | {"note": " ".join(notes) or None}


def warn_of_random(name: str, own: float, random: float) -> str:
    """Warn of learned filters by which images are recognised no better than by random ones."""
    return (
        f"On held-out images, learned filters of {name} recognise the classes no better than random ones "
        f"({own:.1%} against {random:.1%}), within the error of this comparison."
    )


def recognise(inspected: LayerInspection, shown: LabelledImages, kernel: Tensor) -> Recognition:
    """Fit machines to the training images and recognise the held-out ones, by a kernel (N, N) of all images."""
    n, values = shown.training, kernel.numpy()
    own, others = values[:n, :n], values[n:, :n]
    decided, penalty = classify_by_kernel(own, others, shown.labels[:n], inspected.request.seed)
    return Recognition(decided == shown.held_out, penalty)
