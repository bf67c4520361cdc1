"""Names of what a session remembers, and the keys of what the process remembers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

IMAGE_KEY = "image"
"""In the session and in the link: the chosen image, ``set/number``."""
IMAGES_KEY = "images"
"""In the session and in the link: the numbers of several chosen images of a set, with commas."""
STOPPED_KEY = "explore_stopped"
"""In the session: keys of work that was stopped here and is not begun again unasked."""
STARTED_KEY = "explore_begun"
"""In the session: keys of long work that was begun here by a click."""


def digest(*parts: str | bytes) -> str:
    """One SHA-256 for several parts; each is preceded by its length, so that no two lists of parts collide."""
    total = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        total.update(len(content).to_bytes(8, "big") + content)
    return total.hexdigest()


def tensor_digest(values: Tensor) -> str:
    """SHA-256 over shape, type and every element: Streamlit's own hash samples large arrays."""
    content = values.detach().cpu().contiguous().numpy()
    return digest(str(content.shape), str(content.dtype), content.tobytes())
