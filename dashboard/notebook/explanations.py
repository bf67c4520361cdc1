"""Heatmaps from Python, which draw themselves in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from core.attribution.method import HeatmapMethod
from core.attribution.outside.external import ImageRecord, records_for
from core.drawing.sheet import embed_png
from core.drawing.views import View, view
from core.network.classifier import Classifier
from core.types import Certificate, Explanation
from dashboard.notebook.display import Bars, escape, show_image
from dashboard.notebook.images import Images, open_images
from dashboard.notebook.networks import load
from inquiry.files.chosen_methods import assign_parameters, open_methods
from inquiry.files.heatmap_files import DrawnImage, draw_map, write_map
from inquiry.files.targets import resolve_target

DEFAULT_METHOD = "bayesian_teaching"


@dataclass(frozen=True)
class Heatmap:
    """The heatmap of one image by one method.

    Attributes
    ----------
    image, method, category
        Names: of the image, of the method as it was given, and of the explained class.
    map
        (H, W) float32, in the network's input space.
    certificate
        What is known about it; its warnings belong to every drawing of it.
    """

    image: str
    method: str
    category: str
    _explanation: Explanation
    _index: int
    _seen: DrawnImage

    @property
    def map(self) -> NDArray[np.float32]:
        """Values (H, W) float32."""
        values: NDArray[np.float32] = self._explanation.map[self._index].numpy()
        return values

    @property
    def certificate(self) -> Certificate:
        """The certificate."""
        return self._explanation.certificates[self._index]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences to read before believing the heatmap."""
        return (*self.certificate.warnings, *([self._seen.note] if self._seen.note else []))

    def draw(self) -> Image.Image:
        """Draw the image, the heatmap over it, and its scale."""
        caption = f"{self.method}: {self.category} ({self.certificate.probability:.2f})"
        return draw_map(self._explanation, self._index, self._seen.image, caption)

    def show(self) -> None:
        """Display the drawing: in the notebook, or in the system's viewer."""
        show_image(self.draw())

    def save(self, folder: str | Path) -> Path:
        """Write ``IMAGE.METHOD.npy``, ``.png`` and ``.json`` (the certificate); return the path of the drawing."""
        method = self.method.replace(".py:", ".").replace(":", ".").replace("/", "_")
        base = Path(folder) / f"{self.image}.{method}"
        base.parent.mkdir(parents=True, exist_ok=True)
        facts = {"category": self.category, "image": self.image}
        write_map(base, self._explanation, self._index, self._seen, self.category, facts)
        return base.with_name(f"{base.name}.png")

    def __repr__(self) -> str:
        return f"Heatmap of {self.image} by {self.method}: evidence for {self.category}"

    def _repr_html_(self) -> str:
        words = f"{self.image}: {self.method}, evidence for {self.category}"
        warnings = "".join(f"<p>Warning: {escape(sentence)}</p>" for sentence in self.warnings)
        return f'<figure style="margin:0"><img alt="{escape(words)}" src="{embed_png(self.draw())}">{warnings}</figure>'


@dataclass(frozen=True)
class Explanations(Sequence[Heatmap]):
    """Heatmaps of several images by several methods, image by image; a notebook draws them as a table.

    Attributes
    ----------
    classifier, methods, parameters, seed
        What they were made with.
    """

    classifier: Classifier
    methods: tuple[str, ...]
    parameters: dict[str, dict[str, Any]]
    seed: int
    heatmaps: tuple[Heatmap, ...]

    @overload
    def __getitem__(self, index: int) -> Heatmap: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Heatmap, ...]: ...
    def __getitem__(self, index: int | slice) -> Heatmap | tuple[Heatmap, ...]:
        return self.heatmaps[index]

    def __len__(self) -> int:
        return len(self.heatmaps)

    def __iter__(self) -> Iterator[Heatmap]:
        return iter(self.heatmaps)

    def to_numpy(self) -> NDArray[np.float32]:
        """Return all values as one array (images, methods, H, W)."""
        stacked = np.stack([one.map for one in self])
        return stacked.reshape(-1, len(self.methods), *stacked.shape[1:])

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the certificates: a row for each heatmap."""
        rows = [{"image": h.image} | h.certificate.as_dict() | {"category": h.category} for h in self]
        return pd.DataFrame(rows)

    def save(self, folder: str | Path) -> list[Path]:
        """Write every heatmap as `Heatmap.save` does."""
        return [one.save(folder) for one in self]

    def show(self) -> None:
        """Display every drawing."""
        for one in self:
            one.show()

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "No heatmaps"

    def _repr_html_(self) -> str:
        per_image = [self.heatmaps[k : k + len(self.methods)] for k in range(0, len(self), len(self.methods))]
        head = "".join(f"<th>{escape(method)}</th>" for method in self.methods)
        rows = "".join(
            f"<tr><th>{escape(row[0].image)}<br>{escape(row[0].category)}</th>"
            + "".join(f"<td>{one._repr_html_()}</td>" for one in row)
            + "</tr>"
            for row in per_image
        )
        return f"<table><tr><th></th>{head}</tr>{rows}</table>"


def explain(
    model: str | nn.Module | Classifier,
    images: Images,
    method: str | Sequence[str] = DEFAULT_METHOD,
    *,
    target: int | str = "top",
    seed: int = 0,
    **parameters: Any,
) -> Explanations:
    """Explain the prediction of a network for each of several images, by one method or several.

    Parameters
    ----------
    model
        As `load` takes it.
    images
        Files, folders, PIL images or arrays (H, W, 3) of uint8.
    method
        Names as `methods` lists them, ``"mine.py:explain"``, or ``"heatmaps:FOLDER"``.
    target
        The class to explain, by index or name; "top" is each image's predicted class.
    seed
        Of the methods that draw at random.
    parameters
        Go to every method that declares them.

    Raises
    ------
    ForetellError
        Wrong input, or a method that does not apply to this network.
    """
    classifier, opened = load(model), open_images(images)
    methods = open_methods([method] if isinstance(method, str) else list(method), Path.cwd())
    given = assign_parameters(methods, parameters)
    views = [view(classifier, one.photograph) for one in opened]
    inputs = torch.stack([classifier.preprocess(one.photograph) for one in opened])
    chosen = resolve_target(classifier, target)
    targets = [chosen] * len(opened) if chosen is not None else classifier.logits(inputs).argmax(1).tolist()
    names = [one.name for one in opened]
    made = {}
    with Bars() as bars:
        for name, called in methods.items():
            generator, more = torch.Generator().manual_seed(seed), _records(called, views, names) | given[name]
            made[name] = called(classifier, inputs, targets, generator=generator, progress=bars, **more)
    drawn = [DrawnImage.of(one) for one in views]
    heatmaps = [
        Heatmap(name, method, classifier.names.short[targets[k]], explanation, k, drawn[k])
        for k, name in enumerate(names)
        for method, explanation in made.items()
    ]
    return Explanations(classifier, tuple(methods), given, seed, tuple(heatmaps))


def _records(method: HeatmapMethod, views: Sequence[View], names: Sequence[str]) -> dict[str, Any]:
    return records_for(method, [ImageRecord.of(one, name) for one, name in zip(views, names, strict=True)])
