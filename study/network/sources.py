"""The classifier and the image sets that a study names, and how their categories correspond."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import data
from core.attribution.method import HeatmapMethod
from core.attribution.outside.external import digest_of
from core.class_names import ClassNames
from core.errors import ForetellError
from core.files import FileLimits, find_file
from core.network.classifier import Classifier
from core.network.device import default_device, find_device
from core.sources import load
from data.errors import DataError
from data.sets.wnids import imagenet_index
from data.types import ImageSet
from study.conditions import CONDITIONS
from study.network.methods import open_study_method, refuse_network
from study.network.priors import StoredPrior, load_prior
from study.plan.config import IMAGE_SETS, ImageSource, StudyConfig, read
from study.plan.typed import StudyLimits, find_study_limits
from study.workspace.provenance import code_digest

DATA = Path(data.__file__).parent
IMAGENET_CLASSES = 1000
UNMATCHED = -1
ZOO = "scenes:"
"""Of the names of the networks with a known difference (docs/zoo.md)."""


@dataclass(frozen=True)
class Sources:
    """A study file with everything it names, opened."""

    config: StudyConfig
    base: Path
    classifier: Classifier
    sets: dict[str, ImageSet]
    prior: StoredPrior | None
    method: HeatmapMethod
    limits: FileLimits | None = None
    """Of the files that the strata name."""

    @property
    def key(self) -> str:
        """SHA-256 over settings, network, images, files that these name, and the code: what the stimuli depend on."""
        parts = [self.config.digest, self.classifier.fingerprint, self.classifier.transforms_digest, code_digest()]
        parts += ["\0".join(self.classifier.categories)]
        parts += [images.digest for images in self.sets.values()]
        parts += [self.prior.digest] if self.prior else []
        strata = self.config.trials.strata
        files = strata.digest_files(self.base, self.limits) if strata else None
        parts += [files] if files else []
        own = digest_of(self.method, self.classifier)
        parts += [own] if own else []
        parts += [CONDITIONS.plugins[name].digest for name in self.config.conditions if name in CONDITIONS.plugins]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()


def open_sources(path: Path, device: str | None = None) -> Sources:
    """Read a study file and open its classifier and image sets."""
    config = read(path)
    limits = find_study_limits(path, config.model_dump())  # after the file was read: it may change meanwhile
    return open_config_sources(config, path.resolve().parent, device, limits)


def open_config_sources(
    config: StudyConfig, base: Path, device: str | None = None, limits: StudyLimits | None = None
) -> Sources:
    """Open what a study file's content names, files relative to ``base`` and within the ``limits``."""

    def find(*places: str) -> FileLimits | None:
        return None if limits is None else limits.find(*places)

    method = open_study_method(config, base, find("saliency.method"))  # first what is opened at once
    sets = open_sets(config, base, limits)
    whole = config.classifier.resize == "whole"
    model = find("classifier.model")  # last what fetches weights
    classifier = open_classifier(config.classifier.model, base, device, whole=whole, limits=model)
    refuse_network(method, classifier)
    file = config.teaching.prior
    prior = None if file is None else load_prior(find_file(base, file, find("teaching.prior")), classifier)
    return Sources(config, base, classifier, sets, prior, method, find("trials.strata.parameters"))


def open_classifier(
    model: str,
    base: Path,
    device: str | None = None,
    *,
    whole: bool = False,
    limits: FileLimits | None = None,
) -> Classifier:
    """Open ``model`` as a study file names it: built in, or a specification of `core.sources.load`.

    Files and folders are relative to ``base``. Those built in are loaded exactly as a user's own file. ``device`` None
    is an accelerator if there is one; ``whole`` squashes images to the input instead of cropping them; ``limits`` are
    those of the account that named the model.
    """
    place = default_device() if device is None else find_device(device)
    if model in data.CLASSIFIERS:
        return load(str(DATA / data.CLASSIFIERS[model]), device=place, name=model, whole=whole)
    if model.startswith(ZOO):
        known = [name for name in data.CLASSIFIERS if name.startswith(ZOO) or f"{name}:" == ZOO]
        raise ForetellError(f"There is no network {model!r}. For the scenes there are: {', '.join(known)}.")
    return load(model, device=place, base=base, whole=whole, limits=limits)


def open_set(source: ImageSource, base: Path, limits: FileLimits | None = None) -> ImageSet:
    """Return an image set as a study file names it; a ``path`` and a list of ``images`` are relative to ``base``."""
    settings: dict[str, Any] = source.settings
    for name in {"path", "images"} & settings.keys():
        settings[name] = find_file(base, settings[name], limits)
    try:
        opened: ImageSet = IMAGE_SETS[source.set](**settings)
    except DataError as error:
        raise ForetellError(str(error)) from error
    except TypeError as error:
        raise ForetellError(f"Image set {source.set!r} does not accept these settings: {error}.") from error
    return opened


def set_named(name: str, settings: Mapping[str, Any]) -> ImageSet:
    """Return a registered image set with its settings, as a command names it; paths are relative to the working folder.

    Raises
    ------
    ForetellError
        No such set (with the nearest), or settings that it does not take.
    """
    if name not in IMAGE_SETS:
        raise ForetellError(IMAGE_SETS.unknown(name))
    return open_set(ImageSource.model_validate({**settings, "set": name}), Path.cwd())


def open_sets(config: StudyConfig, base: Path, limits: StudyLimits | None = None) -> dict[str, ImageSet]:
    """Return the image sets of a study by their role; one that serves in two is read once.

    Raises
    ------
    ForetellError
        What is wrong with each set that cannot be opened.
    """
    opened: dict[str, ImageSet] = {}
    wrong: dict[str, None] = {}
    sources = config.sets.by_role
    for role, source in sources.items():
        same = next((opened[other] for other in opened if sources[other] == source), None)
        try:
            opened[role] = same or open_set(source, base, limits.find(f"sets.{role}") if limits else None)
        except ForetellError as error:
            wrong[str(error)] = None
    if wrong:
        raise ForetellError("\n".join(wrong))
    return opened


def class_of_labels(images: ImageSet, classifier: Classifier, *, refuse: bool = True) -> NDArray[np.int64]:
    """Find for each image the class index of its label; -1 where the classifier has no such class.

    A tree named by WordNet ids is matched by id to a classifier of the 1,000 ImageNet classes, any other by name
    (`core.class_names.ClassNames.find`); a name that could be several classes matches none.

    Raises
    ------
    ForetellError
        No category matches at all; with ``refuse`` False every class is -1.
    """
    index = match_labels(images, classifier.categories)
    if refuse and all(k == UNMATCHED for k in index):
        raise ForetellError(
            f"No class of {images.name} ({', '.join(images.categories[:4])}, ...) is a class of {classifier.name} "
            f"({', '.join(classifier.categories[:4])}, ...). Choose a network that knows these classes, or name the "
            "folders as this network names its classes."
        )
    classes: NDArray[np.int64] = np.array(index, dtype=np.int64)[images.labels]
    return classes


def match_labels(images: ImageSet, categories: Sequence[str]) -> list[int]:
    """Find for each class of a set the index of the network's class, as `class_of_labels` does; -1 where none is."""
    if images.wnids is not None and len(categories) == IMAGENET_CLASSES:
        return [imagenet_index(wnid) for wnid in images.wnids]
    return match_classes(images.categories, categories)


def match_classes(names: Sequence[str], categories: Sequence[str]) -> list[int]:
    """Find the index of the class that each name means; -1 where that is none, or ambiguous."""
    known = ClassNames(categories)
    meant = [known.find(name) for name in names]
    return [matches[0] if len(matches) == 1 else UNMATCHED for matches in meant]
