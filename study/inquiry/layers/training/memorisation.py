"""The question `memorisation` of `study.inquiry.layers`: what does a network learn first, and what does it memorise?"""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.errors import ForetellError
from core.robustness.box import find_pixel_range
from core.shares import share_of
from core.training.modifications import MODIFICATIONS, PLACED, Examples, Limits, modify_examples
from core.training.record import TrainingMoment, TrainingSettings, record_training
from core.types import Progress, silent
from study.inquiry.layers.question import LayerInspection
from study.workspace.blocks import Blocks

LEVELS = 255
"""Grey levels from black to white, the unit of the radius."""
LEAST = 20
"""Labelled images, of which half are held out."""
MEMORISED = 0.95
"""Training accuracy below which the record warns that training was too short to compare."""
SHARES = {"training": "trained", "training_true": "trained", "held_out": "judged", "coarse": "judged", "fine": "judged",
          "critical": "judged"}  # fmt: skip
"""Columns that are shares of the training images or of the held-out ones."""


def memorisation(
    inspected: LayerInspection,
    progress: Progress,
    *,
    kinds: str = "true,corrupted,random_labels",
    epochs: int = 100,
    corrupted: float = 0.5,
    radius: float = 1.0,
    cut: float = 8.0,
    rate: float = 0.002,
) -> pd.DataFrame:
    """Train the network again from random weights, on true and on modified data, and record what it learns by epoch.

    Half of the labelled images are trained on, the others held out. The kinds of data (Zhang et al. 2017,
    arXiv:1611.03530): ``true``, ``corrupted`` (each label drawn again with this probability), ``random_labels``,
    ``shuffled`` (pixels moved alike in all images), ``random_pixels`` (moved in each image in another way) and
    ``gaussian`` (pixels drawn at random). ``training`` is the share of training images with the label trained on,
    ``training_true`` that with the true one, ``held_out`` the accuracy on held-out images with true labels, and
    ``coarse`` and ``fine`` that on their spatial frequencies up to ``cut`` cycles per image and above. After Arpit et
    al. 2017 (arXiv:1706.05394): ``critical`` is the share of held-out images with another prediction when every pixel
    may change by ``radius`` grey levels, a lower bound; ``sensitivity`` is the mean L1 norm of the loss's gradient by a
    training image, over the rows so far, and ``gini`` its Gini coefficient. Shares have 95% intervals over images, for
    this one training. ``note`` warns where a training was too short to compare.

    Parameters
    ----------
    kinds
        Kinds of training data, separated by commas: true, corrupted, random_labels, shuffled, random_pixels, gaussian.
    epochs
        Passes over the training images.
    corrupted
        Probability with which a label of corrupted data is drawn again.
    radius
        Largest change of each pixel for a critical image, in grey levels (black to white is 255).
    cut
        Highest of the low spatial frequencies, in cycles per image.
    rate
        Learning rate of Adam.
    """
    chosen = _list_kinds(kinds)
    if not 0 < radius <= LEVELS:
        raise ForetellError(f"radius={radius:g}: a radius is more than 0 and at most {LEVELS} grey levels.")
    settings = TrainingSettings(epochs=epochs, rate=rate, radius=radius / LEVELS, cut=cut)
    training, held_out, classes = divide_images(inspected)
    limits = Limits(classes, *find_pixel_range(inspected.classifier), corrupted)

    def train_kind(block: range) -> dict[str, NDArray[Any]]:
        draws = inspected.generator()
        own = modify_examples(chosen[block.start], training, held_out, limits, draws)
        generator = inspected.generator()  # the same random weights for every kind
        moments = record_training(inspected.classifier, *own, settings, generator=generator, progress=silent)
        return {"moments": np.array([astuple(moment) for moment in moments])[None]}

    kept = Blocks(inspected.parts, inspected.key, len(chosen), 1)
    records = kept.join(train_kind, progress, "trainings")["moments"]
    kept.forget()
    counts = {"trained": len(training.labels), "judged": len(held_out.labels)}
    tables = [_tabulate(kind, record, counts, len(classes)) for kind, record in zip(chosen, records, strict=True)]
    return pd.concat(tables, ignore_index=True)


def _list_kinds(text: str) -> list[str]:
    chosen = list(dict.fromkeys(kind.strip() for kind in text.split(",")))
    unknown = [kind for kind in chosen if kind not in MODIFICATIONS]
    if unknown:
        raise ForetellError(
            f"kinds={text!r}: {unknown[0]!r} is no kind of data. There are: {', '.join(MODIFICATIONS)}."
        )
    return chosen


def divide_images(inspected: LayerInspection) -> tuple[Examples, Examples, Tensor]:
    """Divide the labelled images into training and held-out ones, half of each class, and list their classes.

    Raises
    ------
    ForetellError
        Too few images with a label that is a class of the network, or only one class.
    """
    known = torch.from_numpy(inspected.classes)
    rows, draws = torch.nonzero(known >= 0)[:, 0], inspected.generator()
    if len(rows) < LEAST:
        raise ForetellError(
            f"{len(rows)} images have a label that is a class of {inspected.classifier.name}: half of them are trained "
            f"on and half held out, so give {LEAST} or more."
        )
    classes = torch.unique(known[rows])
    if len(classes) < 2:
        raise ForetellError("All images have the same label, which leaves nothing to be learned: give a second class.")
    rows = rows[torch.randperm(len(rows), generator=draws)]
    rows = rows[known[rows].argsort(stable=True)]
    first, second = rows[::2].sort().values, rows[1::2].sort().values
    training, held_out = (Examples(inspected.inputs[own], known[own], known[own]) for own in (first, second))
    return training, held_out, classes


def _tabulate(kind: str, moments: NDArray[np.float64], counts: dict[str, int], classes: int) -> pd.DataFrame:
    """Return one row for each measured epoch; frequencies are left out where pixels were moved."""
    table = pd.DataFrame(moments, columns=[field.name for field in fields(TrainingMoment)])
    frame = pd.DataFrame({"kind": kind, "epoch": table["epoch"].astype(int)})
    for name, images in SHARES.items():
        shares = [share_of(int(count), counts[images]) for count in table[name]]
        frame[[name, f"{name}_low", f"{name}_high"]] = shares
    if kind not in PLACED:
        frame[[f"{part}{end}" for part in ("coarse", "fine") for end in ("", "_low", "_high")]] = np.nan
    frame[["sensitivity", "gini"]] = table[["sensitivity", "gini"]]
    frame["chance"] = 1 / classes
    frame["note"] = None
    frame.loc[frame.index[-1], "note"] = warn_of(kind, float(frame["training"].iloc[-1]), int(frame["epoch"].iloc[-1]))
    return frame


def warn_of(kind: str, training: float, epoch: int) -> str | None:
    """Warn of a training that ended before the network gave its training images their labels."""
    if training >= MEMORISED:
        return None
    return (
        f"Data {kind.replace('_', ' ')}: after {epoch} epochs {training:.0%} of the training images have the label "
        "trained on. Train for more epochs before you compare this record with others at its end."
    )
