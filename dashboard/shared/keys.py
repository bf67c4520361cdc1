"""Names of what a session remembers, and the keys of what the process remembers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

IMAGE_KEY = "image"
"""In the session and in the link: the chosen image, ``set/number``."""
IMAGES_KEY = "images"
"""In the session and in the link: the numbers of several chosen images of a set, with commas."""
FIRST_IMAGES_KEY = "first_images"
"""In the session: the images of a grid, as in the link, that nobody picked: the first of the order."""
NEW_STUDY = "A new study"
"""In the link of Design: make a new study."""
HANDED_MODEL, HANDED_IMAGES, HANDED_METHOD = "model", "images_of", "explain_by"
"""In the link of Design: what a new study takes over from another page."""
HEATMAP_PATH = "/heatmap"
"""Path of the small heatmaps of the Gallery's thumbnails."""
STOPPED_KEY = "explore_stopped"
"""In the session: keys of jobs that were stopped here, and restart only after a click."""
STARTED_KEY = "explore_begun"
"""In the session: keys of long jobs that were started here by a click."""


def digest(*parts: str | bytes) -> str:
    """Return one SHA-256 for several parts, each preceded by its length, so that no two lists collide."""
    total = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        total.update(len(content).to_bytes(8, "big") + content)
    return total.hexdigest()


def build_key(home: Path, study: str) -> str:
    """Return the key of the one job at a time that builds a study of a workspace."""
    return digest("build", str(home), study)


def tensor_digest(values: Tensor) -> str:
    """Return the SHA-256 of shape, type and every element: Streamlit's own hash samples large arrays."""
    content = values.detach().cpu().contiguous().numpy()
    return digest(str(content.shape), str(content.dtype), content.tobytes())
