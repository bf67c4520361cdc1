"""Questions of `study.inquiry.layers` about small changes of an image: attacks, margins, spatial frequencies."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import binom
from torch import Tensor

from core.errors import ForetellError
from core.names import format_name
from core.robustness import ATTACKS
from core.robustness.bands import band_margins, dct_bands
from core.robustness.boundary import directions_between
from core.robustness.boundary import margins as margins_of
from core.robustness.frequencies import accuracy_by_radius
from core.shares import Share, share_of
from core.types import Progress, silent
from study.inquiry.layers.question import LayerInspection
from study.workspace.blocks import Blocks

ImageCount = Annotated[int, "Largest number of images that are measured."]
LEVELS = 255
"""Grey levels from black to white, the unit of the radii."""
BLOCK = 16
"""Images attacked before the predictions are saved."""


def attacks(
    inspected: LayerInspection,
    progress: Progress,
    *,
    names: str = "fgsm,pgd,langevin",
    radii: str = "1,2,4,8",
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
    shown, classes = _select_labelled(inspected)
    chosen = [(name.strip(), radius) for name in names.split(",") for radius in _numbers("radii", radii)]
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

        kept = Blocks(inspected.parts, f"{inspected.key}.{name}.{radius:g}", len(shown), BLOCK)
        step = f"{format_name(name)}, {radius:g} grey level{'' if radius == 1 else 's'}"
        fooled = kept.join(attack_block, progress, step)["fooled"]
        right = correct & ~fooled
        rows.append([name, radius, *_share(right), *_share(fooled)])
        kept.forget()
    parts = ("", "_low", "_high")
    columns = ["attack", "grey_levels", *(f"right{part}" for part in parts), *(f"critical{part}" for part in parts)]
    return pd.DataFrame(rows, columns=columns)


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
    shown, classes = _select_labelled(inspected)
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

    kept = Blocks(inspected.parts, inspected.key, count, 1)
    distances = kept.join(walk_block, progress, "walking to the boundary")["margins"]
    kept.forget()
    table = pd.DataFrame(distances, columns=["anywhere", "discriminative", "random"])
    table.insert(0, "image", [inspected.images.ids[int(i)] for i in shown[:count]])
    table.insert(1, "right", (predictions == classes).numpy()[:count])
    return table


def _draw_directions(inputs: Tensor, labels: list[int], own: int, likeliest: list[int], most: int) -> Tensor:
    """Compute directions between images of the class ``own`` and those of the next likeliest class in the set."""
    other = next(k for k in likeliest if k != own and k in labels)
    return directions_between(inputs, labels, own, other)[:most]


def frequencies(inspected: LayerInspection, progress: Progress, *, radii: str = "2,4,8,12,16,24,32") -> pd.DataFrame:
    """Measure accuracy on the low and the high spatial frequencies of the images, by cut-off in cycles per image.

    Parameters
    ----------
    radii
        Cut-offs between low and high frequencies in cycles per image, separated by commas.
    """
    shown, classes = _select_labelled(inspected)
    chosen = _numbers("radii", radii)
    curve = accuracy_by_radius(
        inspected.classifier, inspected.inputs[shown], classes.tolist(), chosen, progress=progress
    )
    size = len(shown)
    table = pd.DataFrame({"cycles": chosen})
    for name, accuracy in (("coarse", curve.low), ("fine", curve.high)):
        limits = [share_of(round(float(share) * size), size) for share in accuracy]
        table[[name, f"{name}_low", f"{name}_high"]] = limits
    table["whole"] = curve.whole
    return table


def bands(
    inspected: LayerInspection, progress: Progress, *, images: ImageCount = 32, bands: int = 8, steps: int = 50
) -> pd.DataFrame:
    """Measure the distance to another prediction when only one band of frequencies may change, from coarse to fine.

    Ortiz-Jimenez et al. 2020 (arXiv:2002.06349), section 3.2: bands are blocks on the diagonal of the discrete cosine
    transform, ``low`` to ``high`` cycles per image, of ``dimension`` directions. ``median``, with the 95% interval of
    order statistics, and the 5th and 95th percentile are over the first images, in units of the network's input;
    infinite where no other prediction is met. ``met`` is the share in which one is.

    Parameters
    ----------
    bands
        Number of bands of frequencies.
    steps
        Steps of the search for another prediction, at most.
    """
    cut = dct_bands((inspected.inputs.shape[1], inspected.inputs.shape[2], inspected.inputs.shape[3]), bands)
    count = min(images, len(inspected.inputs))

    def walk_block(block: range) -> dict[str, NDArray[Any]]:
        return {
            "margins": band_margins(inspected.classifier, inspected.inputs[list(block)], bands, steps=steps).numpy()
        }

    kept = Blocks(inspected.parts, inspected.key, count, 1)
    distances = np.sort(kept.join(walk_block, progress, "walking to the boundary in bands")["margins"], axis=0)
    kept.forget()
    rows = [
        [k, band.low, band.high, band.dimension, *_median(own), *_percentiles(own), np.isfinite(own).mean(), count]
        for k, (band, own) in enumerate(zip(cut, distances.T, strict=True))
    ]
    columns = ["low", "high", "dimension", "median", "median_low", "median_high", "p5", "p95", "met", "images"]
    return pd.DataFrame(rows, columns=["band", *columns])


def _percentiles(ordered: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(ordered, [0.05, 0.95], method="inverted_cdf")
    return float(low), float(high)


def _median(ordered: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the median of ordered values and its 95% interval: two of them; 0 and infinite where they are too few."""
    size = len(ordered)
    place = int(binom.ppf(0.025, size, 0.5))
    middle = float(np.quantile(ordered, 0.5, method="inverted_cdf"))
    return (middle, float(ordered[place - 1]), float(ordered[size - place])) if place else (middle, 0.0, np.inf)


def _select_labelled(inspected: LayerInspection) -> tuple[Tensor, Tensor]:
    """Select the images whose label is a class of the network: their indices, and that class."""
    classes = torch.from_numpy(inspected.classes)
    shown = torch.nonzero(classes >= 0)[:, 0]
    return shown, classes[shown]


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ForetellError(f"{name}={text!r} is not a list of numbers separated by commas, such as 1,2,4.") from None


def _share(chosen: NDArray[np.bool_]) -> Share:
    return share_of(int(chosen.sum()), len(chosen))
