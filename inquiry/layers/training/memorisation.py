"""The question `memorisation` of `inquiry.layers`: what does a network learn first, and what does it memorise?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import Any

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.errors import ForetellError
from core.names import format_name
from core.robustness.box import find_pixel_range
from core.shares import share_of
from core.training.modifications import MODIFICATIONS, PLACED, Examples, Limits, modify_examples
from core.training.record import TrainingMoment, TrainingSettings, list_epochs, record_training
from core.types import Progress, silent
from inquiry.layers.costs import PlannedQuestion, Work
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.lists import choose_names, count_listed
from inquiry.layers.record import TableWords, Topic, layer_question
from study import plots

LEVELS = 255
"""Grey levels from black to white, the unit of the radius."""
LEAST = 20
"""Labelled images, of which half are held out."""
MEMORISED = 0.95
"""Training accuracy below which the record warns that training was too short to compare."""
SHARES = {"training": "trained", "training_true": "trained", "held_out": "judged", "coarse": "judged", "fine": "judged",
          "critical": "judged"}  # fmt: skip
"""Columns that are shares of the training images or of the held-out ones."""


def plot_memorisation(table: pd.DataFrame) -> go.Figure:
    """Draw the record of each training by epoch, one panel for each measure, with chance as a dotted line."""
    named = table.rename(columns=RECORDED).assign(kind=table["kind"].map(format_name))
    long = named.melt(["kind", "epoch"], list(RECORDED.values()), "measure", "value")
    figure = px.line(
        long,
        x="epoch",
        y="value",
        color="kind",
        facet_col="measure",
        facet_col_wrap=2,
        markers=True,
        color_discrete_sequence=plots.PALETTE,
    )
    figure.for_each_annotation(lambda panel: panel.update(text=panel.text.partition("=")[2]))
    for row in (2, 3):  # rows are counted from below: those of the accuracies
        figure.add_hline(y=float(table["chance"].iloc[0]), line=plots.DOTTED, row=row, col="all")
    figure = plots.apply_layout(figure, "", percent=True).update_layout(height=740, margin_t=110)
    figure.update_layout(legend={"title": None, "y": 1.06}).update_xaxes(title_text="Epoch", row=1)
    figure.update_yaxes(title=None, range=[-0.03, 1.03])
    return figure.update_yaxes(tickformat=".1f", showticklabels=True, row=1, col=2)  # the Gini coefficient: no share


RECORDED = {
    "training": "Training images",
    "held_out": "Held-out images",
    "coarse": "Low frequencies",
    "fine": "High frequencies",
    "critical": "Near another class",
    "gini": "Gini coefficient",
}
"""The measures of the record, as the panels name them: two side by side on a phone."""


def train_each_kind(planned: PlannedQuestion, given: Mapping[str, Any]) -> Work:
    """Count the steps of training, and the measures of half of the images after some of the epochs."""
    half, moments = planned.image_count // 2, len(list_epochs(int(given["epochs"])))
    kinds = count_listed(given["kinds"])
    each = half * (int(given["epochs"]) + moments * (1 + TrainingSettings.steps))
    return Work(4 * half * moments * kinds, each * kinds)


@layer_question(
    topic=Topic.TRAINING,
    asks="learning random labels",
    reading=(
        "One training for each kind of data, by epoch. The dotted line is chance. Low and high "
        "frequencies: accuracy on held-out images of these alone. Near another class: share of held-out "
        "images. Gini coefficient: of the loss sensitivity."
    ),
    publications={
        "Zhang et al. 2017": "https://arxiv.org/abs/1611.03530",
        "Arpit et al. 2017": "https://arxiv.org/abs/1706.05394",
    },
    lists={"kinds": tuple(MODIFICATIONS)},
    table=TableWords(
        headings=RECORDED,
        shares="training|training_true|held_out|coarse|fine|critical|chance",
        codes={"kind": format_name},
    ),
    figure=plot_memorisation,
    cost=train_each_kind,
)
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
    chosen = choose_names("kinds", kinds, MODIFICATIONS, "kind of data")
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

    records = inspected.compute_blocks(train_kind, len(chosen), 1, progress, "trainings")["moments"]
    counts = {"trained": len(training.labels), "judged": len(held_out.labels)}
    tables = [_tabulate(kind, record, counts, len(classes)) for kind, record in zip(chosen, records, strict=True)]
    return pd.concat(tables, ignore_index=True)


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
