"""Heatmaps of single images and classes, kept in the workspace: a killed build makes none twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from core.attribution.method import HeatmapMethod
from core.attribution.outside.external import ExternalMethod, ImageRecord, digest_of, reads_heatmaps, records_for
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.parameters import parse_parameters
from core.types import Certificate, Explanation, Progress
from study.plan.config import Saliency
from study.workspace.files import write_whole
from study.workspace.provenance import code_digest


class MapCache:
    """Makes heatmaps by a study's method, opened, and keeps each under the SHA-256 of everything it depends on."""

    def __init__(self, classifier: Classifier, saliency: Saliency, folder: Path, method: HeatmapMethod) -> None:
        self.classifier, self.saliency, self.folder, self.method = classifier, saliency, folder / "maps", method
        self._files = digest_of(method, classifier)
        self._code = code_digest()

    def explain(
        self, inputs: Tensor, classes: Sequence[int], seed: int, progress: Progress, records: Sequence[ImageRecord]
    ) -> Explanation:
        """Explain inputs (B, C, H, W) for classes (B,), each as it would be in one batch."""
        each = [
            self._one(image[None], k, seed, progress, record)
            for image, k, record in zip(inputs, classes, records, strict=True)
        ]
        errors = [explanation.error for explanation in each if explanation.error is not None]
        return Explanation(
            torch.cat([explanation.map for explanation in each]),
            torch.cat([explanation.zeros for explanation in each]),
            tuple(explanation.certificates[0] for explanation in each),
            torch.cat(errors) if errors else None,
        )

    def _one(self, image: Tensor, category: int, seed: int, progress: Progress, record: ImageRecord) -> Explanation:
        path = self.folder / f"{self._key(image, category, seed, record)}.safetensors"
        stored = _load_explanation(path)
        if stored is not None:
            return stored
        explanation = self._make(image, category, seed, progress, record)
        _store(path, explanation)
        return explanation

    def _make(self, image: Tensor, category: int, seed: int, progress: Progress, record: ImageRecord) -> Explanation:
        given = parse_parameters(self.method, self.saliency.parameters) | records_for(self.method, [record])
        generator = torch.Generator().manual_seed(seed)
        try:
            return self.method(self.classifier, image, [category], generator=generator, progress=progress, **given)
        except ForetellError as error:
            if not isinstance(self.method, ExternalMethod) or self.method.reads_heatmaps:
                raise
            raise ForetellError(f"{record.names[0]}: {error}") from error

    def _key(self, image: Tensor, category: int, seed: int, record: ImageRecord) -> str:
        settings = self.saliency.model_dump_json(include={"method", "parameters"}) + self._files
        settings += repr(record) if reads_heatmaps(self.method) else ""
        text = f"{self.classifier.fingerprint}|{self._code}|{settings}|{category}|{seed}|{tuple(image.shape)}|"
        return hashlib.sha256(text.encode() + image.numpy().tobytes()).hexdigest()


def _store(path: Path, explanation: Explanation) -> None:
    tensors = {"map": explanation.map, "zero": explanation.zeros} | (
        {} if explanation.error is None else {"error": explanation.error}
    )
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_whole(path, save(whole, {"certificate": json.dumps(explanation.certificates[0].as_dict())}))


def _load_explanation(path: Path) -> Explanation | None:
    with suppress(OSError, SafetensorError, ValueError, KeyError, TypeError), safe_open(path, "pt") as file:
        tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        known: dict[str, Any] = json.loads(file.metadata()["certificate"])
        certificate = Certificate(**known | {"warnings": tuple(known["warnings"])})
        return Explanation(tensors["map"], tensors["zero"], (certificate,), tensors.get("error"))
    return None
