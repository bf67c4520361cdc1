"""What all sessions share: classifiers, and image sets with the AI's predictions.

Every cache has one text as its key and a limit; none is ever cleared, because that would empty it for all sessions.
Heatmaps are kept where they are made (`dashboard.shared.jobs`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import streamlit as st
import torch
from numpy.typing import NDArray

import data
from core.class_names import shorten_names
from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.classifier import Classifier
from core.sources.local import list_fetched_models, list_local_models
from core.sources.spec import EXPORTED
from core.types import Progress
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest
from data.types import ImageSet
from study.network.predictions import Predictions, predict
from study.network.sources import UNMATCHED, open_classifier, open_set
from study.plan.config import ImageSource
from study.workspace.folders import find_sets
from study.workspace.workspace import ROOT, home

SCENE_COUNT = 200
"""Of each drawn image set offered for browsing."""
BUILT_IN = "scenes"
DRAWN_SETS = {"scenes": ("adversarial", "standard"), "bars": ("bars",)}
"""Image sets that are drawn, by the built-in networks that were trained on such images."""
MODELS, RULES = "models", "rules"
"""Folders of the workspace: classifiers, files of assertions."""


@dataclass(frozen=True)
class Gallery:
    """An image set with a classifier's predictions and categories."""

    images: ImageSet
    predictions: Predictions
    categories: tuple[str, ...]

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """Return the names of the classifier's classes for display."""
        return shorten_names(self.categories)

    @property
    def has_known_label(self) -> NDArray[np.bool_]:
        """Return whether each image's label is a class of the classifier (N,), so that predictions can be scored."""
        known: NDArray[np.bool_] = self.predictions.truth != UNMATCHED
        return known

    def describe_prediction(self, i: int) -> tuple[str, str, float]:
        """Return the true class of an image, its predicted class, and the confidence."""
        truth = self.images.categories[self.images.labels[i]]
        return truth, self.class_names[self.predictions.predicted[i]], float(self.predictions.probability[i])


@dataclass(frozen=True)
class NetworkFacts:
    """What a network is: its classes, height and width of its input in pixels, and the number of its weights."""

    categories: tuple[str, ...]
    input_size: tuple[int, int]
    parameters: int


def list_models() -> list[str]:
    """List the available classifiers: built in, of the workspace's own folder, others with weights on disk."""
    return list(dict.fromkeys([*list_own_models(), *data.CLASSIFIERS, *_list_models_on_disk()]))


def list_models_to_match() -> list[str]:
    """List the classifiers whose classes may be those of an image set: of the drawn scenes, one has those of all."""
    return list(dict.fromkeys([*list_own_models(), *_list_models_on_disk()]))


def _list_models_on_disk() -> list[str]:
    return [*list_downloaded_models(), *list_fetched_models()]


def list_own_models() -> list[str]:
    """List the built-in classifier and those of the workspace's own folder."""
    return [BUILT_IN, *list_local_models(home(), MODELS)]


def name_model(name: str) -> str:
    """Return the name of a network on the pages: of a file that without folder and ending, unless two have it."""
    short = _shorten_path(name)
    return name if sum(_shorten_path(other) == short for other in list_own_models()) > 1 else short


def _shorten_path(name: str) -> str:
    file = name.rpartition("/")[2]
    if not name.startswith(f"{MODELS}/"):
        return name
    return file.partition(".")[0] if name.endswith((".py", *EXPORTED)) else file


def find_drawn_sets(name: str) -> tuple[str, ...]:
    """Return the drawn image sets of a network: none unless it is built in, and so was trained on such images only."""
    return DRAWN_SETS[name.split(":")[0]] if name in data.CLASSIFIERS else ()


def is_drawn(image_set: str) -> bool:
    """Tell whether an image set is drawn, and not of the workspace's own folder."""
    return any(image_set in names for names in DRAWN_SETS.values())


def list_rule_files() -> list[str]:
    """List the workspace's own files of assertions: those its owner put there, never an upload."""
    return sorted(path.name for path in (home() / RULES).glob("*.py") if path.is_file())


def find_model_spec(name: str) -> tuple[str, Path]:
    """Return the arguments of `open_classifier` for a name of `list_models`."""
    if name in data.CLASSIFIERS:
        return name, ROOT
    if name.endswith(".py"):
        return f"{name}:build", home()
    return name, home() if ":" in name or name.startswith(f"{MODELS}/") else ROOT


def load_classifier(name: str) -> Classifier:
    """Load a classifier of `list_models`; a changed file is read again."""
    spec, base = find_model_spec(name)
    file = base / name
    content = b"" if base == ROOT else stamp_models()
    if file.is_file() and file.parent == home() / MODELS:  # in a folder of its own it has other files
        content = file.read_bytes()
    return _classifier(digest(spec, str(base), content), name)


def stamp_models() -> bytes:
    """Return names, sizes and times of the files of the workspace's classifiers, which may have several each."""
    paths = sorted(path for path in (home() / MODELS).rglob("*") if path.is_file())
    states = [(str(path), status.st_size, status.st_mtime_ns) for path in paths for status in [path.stat()]]
    return repr(states).encode()


@st.cache_resource(max_entries=4, show_spinner="Loading the classifier …")
def _classifier(key: str, _name: str) -> Classifier:  # noqa: ARG001
    return open_classifier(*find_model_spec(_name))


def find_sets_folder() -> Path:
    """Return the workspace's folder of image sets."""
    return find_sets(home())


def list_image_sets() -> list[str]:
    """List the workspace's own image sets: folders with one folder per category."""
    return sorted(path.name for path in find_sets_folder().glob("[!.]*") if path.is_dir())


def stamp_image_set(name: str) -> str:
    """Return names and times of the folders of a set of the workspace: they change with the files in them."""
    folders = [Path(here) for here, _, _ in os.walk(find_sets_folder() / name)]
    return repr(sorted((str(path), path.stat().st_mtime_ns) for path in folders))


def find_image_source(name: str) -> tuple[ImageSource, Path]:
    """Return the arguments of `open_set` for a name of `DRAWN_SETS` or of `list_image_sets`."""
    if name in DRAWN_SETS["scenes"]:
        return ImageSource.model_validate({"set": "scenes", "split": name, "size": SCENE_COUNT}), ROOT
    if is_drawn(name):
        return ImageSource.model_validate({"set": name, "size": SCENE_COUNT}), ROOT
    return ImageSource.model_validate({"set": "folder", "path": f"{find_sets_folder().name}/{name}"}), home()


def start_gallery_job(model: str, name: str) -> Job:
    """Start the job that opens an image set and classifies it; its result is a `Gallery`."""
    asked, folder, source = load_classifier(model), home(), find_image_source(name)

    def work(progress: Progress) -> Gallery:
        images = open_set(*source)
        predictions = predict(asked, images, folder / "cache", progress, labelled=False)
        return Gallery(images, predictions, asked.categories)

    return pool().ask(
        digest(
            "gallery",
            asked.fingerprint,
            *asked.categories,
            str(folder),
            name,
            str(SCENE_COUNT) if is_drawn(name) else stamp_image_set(name),
        ),
        work,
        what=f"Opening the images of {name}",
    )


def start_facts_job(names: Sequence[str]) -> Job:
    """Start the job that reads facts about networks; its result has `NetworkFacts` by name, or the error as a text."""

    def work(progress: Progress) -> dict[str, NetworkFacts | str]:
        facts: dict[str, NetworkFacts | str] = {}
        for k, name in enumerate(names):
            progress(k, len(names), "reading the networks")
            try:
                facts[name] = _read_built_in_facts(name) if name in data.CLASSIFIERS else _read_facts(name)
            except ForetellError as error:
                facts[name] = str(error)
        return facts

    return pool().ask(digest("facts", str(home()), *names, stamp_models()), work)


@cache
def _read_built_in_facts(name: str) -> NetworkFacts:
    """Read the facts about a built-in network once: they are the same in every workspace and for every session."""
    return _read_facts(name)


def _read_facts(name: str) -> NetworkFacts:
    classifier = open_classifier(*find_model_spec(name))
    with classifier.exclusive() as module:
        parameters = sum(values.numel() for values in module.parameters())
    return NetworkFacts(classifier.categories, classifier.input_shape[1:], parameters)


@st.cache_resource(show_spinner=False, max_entries=1)
def list_downloaded_models() -> list[str]:
    """List the torchvision classifiers whose weights are on disk; without any, torchvision is not imported."""
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    files = {path.name for path in folder.glob("*.pth")}
    if not files:
        return []
    import_torchvision()
    from torchvision import models

    names = models.list_models(module=models)
    return [name for name in names if Path(models.get_model_weights(name).DEFAULT.url).name in files]


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
