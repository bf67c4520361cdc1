"""Ready-made assertions, offered next to those of the workspace's files and executed like these."""

from __future__ import annotations

from PIL import Image, ImageOps

from inquiry.assertions.rules import Prediction


def same_when_mirrored(image: Image.Image, prediction: Prediction) -> bool:
    """The prediction does not change when the image is mirrored."""
    return prediction.to(ImageOps.mirror(image)).category == prediction.category
