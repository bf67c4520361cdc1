"""Former name of `data.sets.images`, kept for one release."""

import warnings

from data.sets.images import as_rgb, read_image

__all__ = ["as_rgb", "read_image"]

warnings.warn("data.sets.pictures is now called data.sets.images", DeprecationWarning, stacklevel=2)
