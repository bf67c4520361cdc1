"""What all sessions share: classifiers, picture sets with the AI's answers, and maps.

Every cache has one text as its key and a limit; none is ever cleared, because that would empty it for everybody.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import streamlit as st
import torch
from torch import Tensor

from core.attribution import METHODS
from core.classifier import Classifier
from core.loading import torchvision
from core.types import Explanation, Progress, silent
from dashboard.keys import digest, tensor_digest
from data.types import ImageSet
from study.config import ImageSource
from study.predictions import Predictions, predict
from study.sources import open_classifier, open_set
from study.workspace import ROOT, home

PICTURES = 200
"""Of each split offered for browsing."""


@dataclass(frozen=True)
class Gallery:
    """A picture set and what a classifier says of each picture of it."""

    images: ImageSet
    answers: Predictions


@dataclass(frozen=True)
class Request:
    """One map to be made: of an input (C, H, W), for one class."""

    classifier: Classifier
    method: str
    inputs: Tensor
    target: int
    seed: int
    parameters: dict[str, Any]

    @property
    def key(self) -> str:
        """SHA-256 over everything the map depends on."""
        settings = json.dumps([self.method, self.target, self.seed, self.parameters], sort_keys=True)
        return digest(self.classifier.fingerprint, settings, tensor_digest(self.inputs))

    def compute(self, progress: Progress) -> Explanation:
        """Make the map."""
        explanation: Explanation = METHODS[self.method](
            self.classifier,
            self.inputs[None],
            [self.target],
            generator=torch.Generator().manual_seed(self.seed),
            progress=progress,
            **self.parameters,
        )
        return explanation


@dataclass
class Slot:
    """The place of one result; whoever comes first makes it, the others wait."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    explanation: Explanation | None = None


@st.cache_resource(max_entries=4, show_spinner="Loading the classifier …")
def classifier(name: str) -> Classifier:
    """The built-in classifier, or a torchvision model whose weights are on disk."""
    return open_classifier(name, ROOT)


@st.cache_resource(max_entries=8, show_spinner="Asking the AI about the pictures …")
def gallery(split: str) -> Gallery:
    """The first pictures of a split of the scenes with the built-in classifier's answers."""
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": split, "size": PICTURES}), ROOT)
    return Gallery(images, predict(classifier("scenes"), images, home() / "cache", silent))


@st.cache_resource(show_spinner=False, max_entries=1)
def downloaded_models() -> list[str]:
    """Names of the torchvision classifiers whose weights are on disk; torchvision is not asked where there are none."""
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    files = {path.name for path in folder.glob("*.pth")}
    if not files:
        return []
    torchvision()
    from torchvision import models

    names = models.list_models(module=models)
    return [name for name in names if Path(models.get_model_weights(name).DEFAULT.url).name in files]


@st.cache_resource(max_entries=64, show_spinner=False)
def _slot(key: str) -> Slot:  # noqa: ARG001 - the key is all that tells slots apart
    return Slot()


def explained(key: str, _payload: Request, progress: Progress = silent) -> Explanation:
    """The map of a request, made once per key.

    A slot instead of a cached value: a cached function may not draw on a progress bar that was made outside it.
    """
    slot = _slot(key)
    with slot.lock:
        if slot.explanation is None:
            slot.explanation = _payload.compute(progress)
        return slot.explanation


@st.cache_resource(max_entries=64, show_spinner=False)
def _turn(key: str) -> threading.Lock:  # noqa: ARG001 - the key is all that tells locks apart
    return threading.Lock()


@contextmanager
def one_at_a_time(what: str) -> Iterator[bool]:
    """Whether it is our turn to do `what`; another session that does it now is not waited for."""
    lock = _turn(what)
    ours = lock.acquire(blocking=False)
    try:
        yield ours
    finally:
        if ours:
            lock.release()
