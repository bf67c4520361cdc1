"""Heatmap files: ``<name>.npy`` (H, W) float32, ``.png`` to view, ``.json`` with its certificate, in this order."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from core.drawing.rendering import overlay, scale_of, tile_images, with_scale
from core.drawing.views import View
from core.types import Explanation
from study.workspace.files import write_whole

SIDE = 448
"""Width of a drawn image, px."""
OPACITY = 0.8
FAST = 1
"""PNG compression level: a quarter of the default level's time for a fifth more bytes."""


@dataclass(frozen=True)
class DrawnImage:
    """An image as a network sees it, at the size it is drawn; ``note`` as in `core.drawing.views.View`."""

    image: Image.Image
    note: str

    @classmethod
    def of(cls, view: View) -> DrawnImage:
        """Draw all that is needed later, and release the photograph, which may be large."""
        return cls(view.draw(view.size(SIDE)), view.note)


def read_stored_key(base: Path) -> str | None:
    """Read the key of a complete heatmap; None if there is none."""
    try:
        facts = json.loads(_file(base, "json").read_bytes())
    except (OSError, ValueError):
        return None
    whole = _file(base, "npy").is_file() and _file(base, "png").is_file()
    return facts.get("key") if whole and isinstance(facts, dict) else None


def write_map(base: Path, explanation: Explanation, i: int, seen: DrawnImage, name: str, facts: dict[str, Any]) -> None:
    """Write heatmap ``i`` of the class ``name`` with ``facts``, drawn over the image as it was ``seen``.

    An old certificate is removed first and the new one written last, so a certificate always matches its files.
    """
    certificate = explanation.certificates[i]
    _file(base, "json").unlink(missing_ok=True)
    write_whole(_file(base, "npy"), _bytes(lambda file: np.save(file, explanation.map[i].numpy())))
    caption = f"{certificate.method}: {name} ({certificate.probability:.2f})"
    drawn = draw_map(explanation, i, seen.image, caption)
    write_whole(_file(base, "png"), _bytes(lambda file: drawn.save(file, "PNG", compress_level=FAST)))
    warnings = [*certificate.warnings, *([seen.note] if seen.note else [])]
    text = json.dumps(certificate.as_dict() | {"warnings": warnings} | facts, indent=1, ensure_ascii=False) + "\n"
    write_whole(_file(base, "json"), text.encode())


def draw_map(explanation: Explanation, i: int, seen: Image.Image, caption: str) -> Image.Image:
    """Draw the image as it was ``seen``, with heatmap ``i`` over it on the right and its scale below."""
    scale = scale_of(explanation, i)
    error = None if explanation.error is None else explanation.error[i]
    shown = overlay(seen, scale.normalise_map(explanation.map[i], error), seen.size, OPACITY)
    return with_scale(tile_images((seen, shown), 2, gap=0), scale, caption)


def _bytes(write: Callable[[io.BytesIO], None]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def _file(base: Path, ending: str) -> Path:
    return base.with_name(f"{base.name}.{ending}")
