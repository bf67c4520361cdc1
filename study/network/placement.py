"""Placement of a frozen study's heatmaps: do they lie where the network looked?

Earlier versions drew them over the middle of the image, its whole short side, whatever the network's transforms did.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from core.network.geometry import Geometry
from study.bundle import Manifest

DRAWING = "drawing"
"""Key of a bundle's environment; earlier versions did not write it."""
MEASURED = "by the measured geometry of the transforms"
DRAWN_SETS = ("scenes", "bars")
"""Built-in sets of square images, which the built-in classifier sees whole: earlier drawings are right there."""
BUILT_IN = ("scenes",)
ENOUGH = 0.005
"""Share of the side below which no drawing is called misplaced: half a pixel of a small one."""
GRID = 32


def caveats(manifest: Manifest | None) -> list[str]:
    """Say what a reader of a study's results must know of its heatmaps; nothing where they are in place."""
    if manifest is None or not manifest.config or not _is_suspect(manifest):
        return []
    return [
        "This study was frozen by an earlier version, which drew heatmaps over the middle of each image and not over "
        "the part that the network saw. Unless the network saw exactly that, participants were shown misplaced "
        "heatmaps. `verify` measures by how much."
    ]


def describe_misplacement(manifest: Manifest, geometries: Iterable[Geometry | None]) -> list[str]:
    """Say how far the heatmaps of a frozen study are misplaced over images of these geometries; none if in place."""
    if not _is_suspect(manifest):
        return []
    measured_geometries = list(geometries)
    known = [misplacement(geometry) for geometry in measured_geometries if geometry is not None]
    unknown = len(measured_geometries) - len(known)
    means, most = np.array(known).reshape(-1, 2).T
    off = int((most > ENOUGH).sum())
    if not off and not unknown:
        return []
    of_some = (
        f"{off} of {len(measured_geometries)} target images by {means.mean():.1%} of the side on average and up to "
    )
    parts = [of_some + f"{most.max():.0%}"] if off else []
    parts += [f"{unknown} of {len(measured_geometries)} by an unknown distance"] if unknown else []
    return [
        "The study was frozen by an earlier version, which drew heatmaps in the wrong place: over "
        + " and over ".join(parts)
        + ". Participants saw them there; build the study again for new participants."
    ]


def misplacement(geometry: Geometry) -> tuple[float, float]:
    """Return the mean and the largest distance by which earlier versions misplaced a heatmap, as shares of the side."""
    height, width = geometry.shape
    rows, columns = np.meshgrid(*((np.arange(GRID) + 0.5) / GRID * n for n in (height, width)), indexing="ij")
    y, x = geometry.locate(rows, columns)
    scale = min(geometry.size[0] / width, geometry.size[1] / height)
    left, top = ((extent - n * scale) / 2 for extent, n in zip(geometry.size, (width, height), strict=True))
    off = np.hypot((x - left) / (scale * width) - columns / width, (y - top) / (scale * height) - rows / height)
    return float(off.mean()), float(off.max())


def _is_suspect(manifest: Manifest) -> bool:
    if DRAWING in manifest.environment:
        return False
    model = manifest.config.get("classifier", {}).get("model")
    sets = [source["set"] for source in manifest.config.get("sets", {}).values()]
    return not (model in BUILT_IN and all(name in DRAWN_SETS for name in sets))
