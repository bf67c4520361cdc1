"""Images of a study on disk: their size, and files named by their content."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

from PIL import Image

from study.network.sources import Sources
from study.workspace.files import write_whole

WEBP = {"quality": 90, "method": 4}


class AssetFolder:
    """A folder of images, each named by the SHA-256 of its bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def write(self, image: Image.Image) -> str:
        """Write an image and return its SHA-256."""
        name, content = encode_asset(image)
        path = self.path / f"{name}.webp"
        if not path.is_file():
            write_whole(path, content)
        return name


def encode_asset(image: Image.Image) -> tuple[str, bytes]:
    """Return the name of an image as an asset, the SHA-256 of its bytes, and the bytes."""
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", **WEBP)
    content = buffer.getvalue()
    return hashlib.sha256(content).hexdigest(), content


def find_size(sources: Sources) -> tuple[int, int]:
    """Return the width and height of a stimulus, px: the longer side is that of ``[display]``."""
    height, width = sources.classifier.input_shape[1:]
    side = sources.config.display.size
    return round(side * width / max(height, width)), round(side * height / max(height, width))
