"""Questions of `inquiry.layers` about small changes of an image: attacks, margins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.errors import ForetellError
from core.names import format_name
from core.robustness import ATTACKS
from core.robustness.boundary import directions_between
from core.robustness.boundary import margins as margins_of
from core.shares import Share, share_of
from core.types import Progress, silent
from inquiry.layers.costs import PlannedQuestion, Work
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.lists import count_listed, read_numbers
from inquiry.layers.record import TableWords, Topic, layer_question
from study import plots

ImageCount = Annotated[int, "Largest number of images that are measured."]
LEVELS = 255
"""Grey levels from black to white, the unit of the radii."""
BLOCK = 16
"""Images attacked before the predictions are saved."""


def plot_attacks(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy under each attack, by radius."""
    shown = table.rename(columns={"right_low": "low", "right_high": "high"}).assign(
        attack=table["attack"].map(format_name)
    )
    radius = "Largest change of a pixel, grey levels"
    return plots.curves(shown, x="grey_levels", y="right", by="attack", title="Still correct", x_title=radius)


STEPS = {"fgsm": 1, "pgd": 40}
"""Gradients that an attack takes per image at most, by its defaults."""
MOST_STEPS = 50
"""Those of an attack that is not named there."""


def search_each_attack(planned: PlannedQuestion, given: Mapping[str, Any]) -> Work:
    """Search by each attack within each radius."""
    steps = sum(STEPS.get(name.strip(), MOST_STEPS) for name in given["names"].split(","))
    return Work(gradients=planned.image_count * steps * count_listed(given["radii"]))


@layer_question(
    topic=Topic.ROBUSTNESS,
    asks="adversarial robustness",
    reading=(
        "Share of images still predicted correctly, by the largest change of a pixel, with 95% "
        "intervals. An upper bound on robustness: an attack that finds nothing proves nothing."
    ),
    publications={
        "Goodfellow et al. 2014": "https://arxiv.org/abs/1412.6572",
        "Madry et al. 2017": "https://arxiv.org/abs/1706.06083",
        "Arpit et al. 2017": "https://arxiv.org/abs/1706.05394",
    },
    lists={"names": tuple(ATTACKS)},
    table=TableWords(
        headings={"right": "Still correct", "critical": "Another class nearby"},
        shares="right|critical",
        codes={"attack": format_name},
    ),
    figure=plot_attacks,
    cost=search_each_attack,
)
def attacks(
    inspected: LayerInspection, progress: Progress, *, names: str = "fgsm,pgd,langevin", radii: str = "1,2,4,8"
) -> pd.DataFrame:
    """Measure the share of images still predicted correctly when every pixel may change by a few grey levels.

    ``critical`` is the share with another predicted class nearby, right or wrong (the critical sample ratio). Both are
    bounds: a search that finds nothing proves nothing.

    Parameters
    ----------
    names
        Attacks, separated by commas: fgsm, pgd or langevin, from the cheapest to the most thorough.
    radii
        Largest changes of a pixel in grey levels (black to white is 255), separated by commas.
    """
    shown, classes = select_labelled(inspected)
    chosen = [(name.strip(), radius) for name in names.split(",") for radius in read_numbers("radii", radii)]
    for name, radius in chosen:
        ATTACKS[name]  # refuse an unknown name or a wrong radius before searching
        if not 0 < radius <= LEVELS:
            raise ForetellError(f"radii={radii!r}: a radius is more than 0 and at most {LEVELS} grey levels.")
    inputs = inspected.inputs[shown]
    predictions = inspected.classifier.logits(inputs).argmax(1)
    correct = (predictions == classes).numpy()
    unchanged = [0.0, *_share(correct), *_share(np.zeros_like(correct))]
    rows: list[list[Any]] = []
    for name, radius in chosen:
        if all(row[0] != name for row in rows):
            rows.append([name, *unchanged])

        def attack_block(block: range, name: str = name, radius: float = radius) -> dict[str, NDArray[Any]]:
            picked = list(block)
            search = ATTACKS[name](
                inspected.classifier,
                inputs[picked],
                predictions[picked].tolist(),
                radius=radius / LEVELS,
                generator=torch.Generator().manual_seed(inspected.request.seed + block.start),
                progress=silent,
            )
            return {"fooled": search.fooled.numpy()}

        step = f"{format_name(name)}, {radius:g} grey level{'' if radius == 1 else 's'}"
        searched = inspected.compute_blocks(attack_block, len(shown), BLOCK, progress, step, f"{name}.{radius:g}")
        fooled = searched["fooled"]
        right = correct & ~fooled
        rows.append([name, radius, *_share(right), *_share(fooled)])
    parts = ("", "_low", "_high")
    columns = ["attack", "grey_levels", *(f"right{part}" for part in parts), *(f"critical{part}" for part in parts)]
    return pd.DataFrame(rows, columns=columns)


def plot_margins(table: pd.DataFrame) -> go.Figure:
    """Draw the distance of the images to another prediction, by subspace; images without one are left out."""
    figure = go.Figure()
    for k, way in enumerate(("anywhere", "discriminative", "random")):
        met = table[np.isfinite(table[way])]
        looks = {"marker": {"color": plots.PALETTE[k], "symbol": plots.MARKS[k]}, "line": {"color": plots.PALETTE[k]}}
        figure.add_box(y=met[way], name=way, boxpoints="all", text=met["image"], showlegend=False, **looks)
    return plots.apply_layout(figure, "Smallest change that changes the prediction", percent=False).update_yaxes(
        type="log"
    )


WALK = 150
"""Gradients, about, of the three walks from one image to its decision boundaries."""


def walk_each_image(planned: PlannedQuestion, given: Mapping[str, Any]) -> Work:
    """Walk from each image to its decision boundaries."""
    return Work(gradients=WALK * min(planned.image_count, int(given["images"])))


@layer_question(
    topic=Topic.ROBUSTNESS,
    asks="distance to the boundary",
    reading=(
        "Distance from each image to another prediction, in units of the network's input: in any "
        "direction, in discriminative directions, and in random ones. Each point is an image; images "
        "whose prediction did not change are left out."
    ),
    publications={"Ortiz-Jimenez et al. 2020": "https://arxiv.org/abs/2002.06349"},
    figure=plot_margins,
    cost=walk_each_image,
)
def margins(
    inspected: LayerInspection, progress: Progress, *, images: ImageCount = 32, directions: int = 16
) -> pd.DataFrame:
    """Measure the distance from each image to another prediction, in all directions and in two subspaces.

    The second subspace is spanned by differences of images of the image's class and of the class next likeliest to
    it, the third by as many random directions (Ortiz-Jimenez et al. 2020, arXiv:2002.06349). In units of the network's
    input; infinite if no other prediction was found, empty if the set has no image of the predicted class.

    Parameters
    ----------
    directions
        Largest number of directions that span either subspace.

    Raises
    ------
    ForetellError
        Images of fewer than two classes.
    """
    shown, classes = select_labelled(inspected)
    inputs, count = inspected.inputs[shown], min(images, len(shown))
    order = inspected.classifier.logits(inputs).argsort(1, descending=True)
    predictions, labels = order[:, 0], classes.tolist()
    if len(set(labels)) < 2:
        raise ForetellError("Directions between classes need images of two or more classes: give a set with more.")

    def walk_block(block: range) -> dict[str, NDArray[Any]]:
        distances = []
        for i in block:
            own = int(predictions[i])
            spans: list[Tensor | None] = [None]
            if own in labels:
                apart = _draw_directions(inputs, labels, own, order[i].tolist(), directions)
                draws = torch.Generator().manual_seed(inspected.request.seed + i)
                spans += [apart, torch.randn(apart.shape, generator=draws)]
            walks = [float(margins_of(inspected.classifier, inputs[i : i + 1], span)[0]) for span in spans]
            distances.append(walks + [np.nan] * (3 - len(walks)))
        return {"margins": np.array(distances)}

    distances = inspected.compute_blocks(walk_block, count, 1, progress, "walking to the boundary")["margins"]
    table = pd.DataFrame(distances, columns=["anywhere", "discriminative", "random"])
    table.insert(0, "image", [inspected.images.ids[int(i)] for i in shown[:count]])
    table.insert(1, "right", (predictions == classes).numpy()[:count])
    return table


def _draw_directions(inputs: Tensor, labels: list[int], own: int, likeliest: list[int], most: int) -> Tensor:
    """Compute directions between images of the class ``own`` and those of the next likeliest class in the set."""
    other = next(k for k in likeliest if k != own and k in labels)
    return directions_between(inputs, labels, own, other)[:most]


def select_labelled(inspected: LayerInspection) -> tuple[Tensor, Tensor]:
    """Select the images whose label is a class of the network: their indices, and that class."""
    classes = torch.from_numpy(inspected.classes)
    shown = torch.nonzero(classes >= 0)[:, 0]
    return shown, classes[shown]


def _share(chosen: NDArray[np.bool_]) -> Share:
    return share_of(int(chosen.sum()), len(chosen))
