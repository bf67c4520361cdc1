"""Heatmaps of a user's own image files, by the thousand: in batches, each file written whole, none computed twice."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from functools import lru_cache, partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from core.attribution.method import HeatmapMethod, versions
from core.attribution.outside.external import ImageRecord, digest_of, records_for
from core.attribution.outside.opening import file_name
from core.drawing.views import view
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size, one_thread
from core.types import Explanation, Progress, silent
from inquiry.files.chosen_methods import assign_parameters, open_methods, refuse_uncovered
from inquiry.files.heatmap_files import DrawnImage, read_stored_key, write_map
from inquiry.files.image_files import find_images, open_image
from inquiry.files.targets import resolve_target
from study.network.sources import open_classifier
from study.workspace import parallel
from study.workspace.provenance import code_digest

BATCHES = 4
"""Batches per worker: enough that no worker waits long for the slowest."""
MOST_AT_ONCE = 32
"""Images explained in one call: at most this many heatmaps of a method are lost when a run is killed."""


@dataclass(frozen=True)
class ExplanationQuery:
    """Images, a network, methods and a target; ``parameters`` are texts, checked against each method's declaration.

    Methods are named as `core.attribution.outside.opening.open_method` takes them, files relative to the working
    folder.
    """

    model: str
    methods: tuple[str, ...]
    target: str = "top"
    parameters: dict[str, str] = field(default_factory=dict)
    seed: int = 0


@dataclass
class Outcome:
    """Counts of heatmaps made, already there, and failed (with the reasons).

    ``notes`` count the heatmaps whose drawing is incomplete, by reason; ``warned`` those made by a method whose
    certificate has warnings, of which ``warnings`` has one for each method.
    """

    n_made: int = 0
    n_kept: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    warned: Counter[str] = field(default_factory=Counter)
    warnings: dict[str, str] = field(default_factory=dict)

    @property
    def done_count(self) -> int:
        """Number of heatmaps that need no more work."""
        return self.n_made + self.n_kept + self.faults.total()

    def add(self, other: Outcome) -> Outcome:
        """Sum two outcomes."""
        return Outcome(
            self.n_made + other.n_made,
            self.n_kept + other.n_kept,
            self.faults + other.faults,
            self.notes + other.notes,
            self.warned + other.warned,
            other.warnings | self.warnings,
        )

    def complain(self) -> None:
        """Raise one error for all heatmaps that could not be made."""
        if self.faults:
            failed, total = self.faults.total(), self.done_count
            some = f"{failed:,} of {total:,} heatmaps could not be made; the others are there. "
            raise ForetellError((some if failed < total else "") + " ".join(self.faults))


def explain_files(
    request: ExplanationQuery,
    images: Sequence[Path],
    out: Path,
    progress: Progress = silent,
    *,
    workers: int | None = None,
    engine: str = "processes",
) -> Outcome:
    """Write ``<image>.<method>.npy`` (H, W) float32, ``.png`` and ``.json`` for each image and method.

    ``images`` are files, folders and patterns (`inquiry.files.image_files`). Names and settings are checked
    before anything is computed. A heatmap whose ``.json`` has this request's key is kept. Grouping
    images into batches changes no heatmap: every call draws from the request's random seed.

    ``workers`` and ``engine`` are those of `study.workspace.parallel.each`; each worker uses one thread, so they
    change no heatmap either. Without both, a few images are explained in this process on all cores.

    Returns
    -------
    Outcome
        Its faults are images that cannot be read and methods that do not apply; `Outcome.complain` raises them.

    Raises
    ------
    ForetellError
        Wrong input.
    """
    if not images:
        raise ForetellError("No image given. Add --image FILE, once for each image, or --image FOLDER.")
    methods = open_methods(request.methods, Path.cwd())
    parameters = assign_parameters(methods, request.parameters)
    files = list(find_images(images).items())
    refuse_uncovered(methods, parameters, [name for name, _ in files])
    classifier = open_classifier(request.model, Path.cwd())
    total = len(files) * len(methods)
    run = _BatchRun(request, methods, classifier, out, total, progress)
    most = min(MOST_AT_ONCE, chunk_size(torch.zeros(classifier.input_shape), classifier.device))
    count = parallel.count_workers(len(files), workers or parallel.workers_here())
    if workers is None and engine == "processes" and count == 1:
        for batch in _divide(files, most):
            run.explain(batch)
        outcome = run.outcome
    else:
        batches = _divide(files, min(most, -(-len(files) // (BATCHES * count))))
        work = partial(_explain_batch, request, out, Path.cwd())
        gpus = torch.cuda.device_count()
        parts = parallel.each(
            work, batches, workers=count, engine=engine, gpus=gpus, what="explaining", progress=progress
        )
        outcome = reduce(Outcome.add, parts)
    return outcome


def _divide(images: list[tuple[str, Path]], size: int) -> list[list[tuple[str, Path]]]:
    return [images[start : start + size] for start in range(0, len(images), size)]


def _explain_batch(request: ExplanationQuery, out: Path, folder: Path, batch: Sequence[tuple[str, Path]]) -> Outcome:
    """Explain images in another process, resolving relative names from the folder of the first."""
    with chdir(folder), one_thread():
        methods = _open_methods_once(request.methods, folder)
        run = _BatchRun(request, methods, _open_once(request.model, folder), out, len(batch) * len(methods), silent)
        run.explain(batch)
    return run.outcome


@lru_cache(maxsize=1)
def _open_methods_once(names: tuple[str, ...], folder: Path) -> dict[str, HeatmapMethod]:
    return open_methods(names, folder)


@lru_cache(maxsize=1)
def _open_once(model: str, folder: Path) -> Classifier:
    return open_classifier(model, folder)


def parameters_of(request: ExplanationQuery) -> dict[str, dict[str, Any]]:
    """Assign to each method its own of the request's parameters; a parameter that none declares is refused."""
    return assign_parameters(open_methods(request.methods, Path.cwd()), request.parameters)


@dataclass(frozen=True)
class _Image:
    """One image of a batch: its file, where its heatmaps go, their keys by method, and its input."""

    file: Path
    base: Path
    keys: Mapping[str, str]
    seen: DrawnImage
    inputs: Tensor
    record: ImageRecord


class _Refusal(NamedTuple):
    """An image for which a method gave no heatmap, and why."""

    file: Path
    sentence: str


class _BatchRun:
    """Work through many images, counting progress and errors."""

    def __init__(
        self,
        request: ExplanationQuery,
        methods: Mapping[str, HeatmapMethod],
        classifier: Classifier,
        out: Path,
        total: int,
        progress: Progress,
    ) -> None:
        self.outcome = Outcome()
        self._methods, self._classifier, self._out = methods, classifier, out
        self._given = assign_parameters(methods, request.parameters)
        self._seed, self._target = request.seed, resolve_target(classifier, request.target)
        self._total, self._progress = total, progress
        self._useless: dict[str, str] = {}
        self._furthest = 0
        # The fingerprint covers the network alone: a transformed image represents the transforms.
        transformed = hashlib.sha256(classifier.fill("mean").numpy().tobytes()).hexdigest()
        names = list(classifier.categories)
        self._origin = [classifier.fingerprint, transformed, names, self._target, self._seed, versions(), code_digest()]

    def explain(self, batch: Sequence[tuple[str, Path]]) -> None:
        """Compute the missing heatmaps of these images."""
        images = [image for name, file in batch if (image := self._open_image(name, file)) is not None]
        if not images:
            return
        targets = self._targets(images)
        for method in self._methods:
            lacking = [(p, k) for p, k in zip(images, targets, strict=True) if self._lacks(p, method)]
            self._count(kept=len(images) - len(lacking))
            if method in self._useless:
                self._fault(self._useless[method], len(lacking))
            elif lacking:
                self._make(method, lacking)

    def _open_image(self, name: str, file: Path) -> _Image | None:
        """Open an image; None if all its heatmaps exist, or if it cannot be read."""
        base = self._out / name
        try:
            keys = self._keys(hashlib.sha256(file.read_bytes()).hexdigest())
            if all(read_stored_key(self._of(base, method)) == key for method, key in keys.items()):
                self._count(kept=len(keys))
                return None
            image = open_image(file)
        except OSError as error:
            self._fault(f"{file} cannot be read ({error.strerror}).", len(self._methods))
        except ForetellError as error:
            self._fault(str(error), len(self._methods))
        else:
            inputs = self._classifier.preprocess(image)
            seen = view(self._classifier, image, inputs)
            return _Image(file, base, keys, DrawnImage.of(seen), inputs, ImageRecord.of(seen, name))
        return None

    def _lacks(self, image: _Image, method: str) -> bool:
        return read_stored_key(self._of(image.base, method)) != image.keys[method]

    def _of(self, base: Path, method: str) -> Path:
        return base.with_name(f"{base.name}.{file_name(self._methods[method])}")

    def _keys(self, content: str) -> dict[str, str]:
        """Hash, by method, all that the image's heatmap depends on."""
        asked = {name: [*self._origin, content, name, given] for name, given in self._given.items()}
        for name, method in self._methods.items():
            if digest := digest_of(method, self._classifier):
                asked[name].append(digest)
        return {name: hashlib.sha256(json.dumps(all_).encode()).hexdigest() for name, all_ in asked.items()}

    def _targets(self, images: Sequence[_Image]) -> list[int]:
        if self._target is not None:
            return [self._target] * len(images)
        predictions: list[int] = self._classifier.logits(torch.stack([p.inputs for p in images])).argmax(1).tolist()
        return predictions

    def _make(self, method: str, images: Sequence[tuple[_Image, int]]) -> None:
        """Compute heatmaps of these images in one call; if it is refused, image by image, to find the cause."""
        refused = self._try_maps(method, images)
        if refused and len(images) > 1:
            refused = [sentence for one in images for sentence in self._try_maps(method, [one])]
            if len(refused) == len(images):
                self._useless[method] = refused[0].sentence
        for file, sentence in refused:
            self._fault(sentence if len(refused) == len(images) else f"{file}: {sentence}", 1)

    def _try_maps(self, method: str, images: Sequence[tuple[_Image, int]]) -> list[_Refusal]:
        """Compute and write heatmaps in one call; return the refusals."""
        try:
            explanation = self._call_method(method, images)
        except ForetellError as error:
            return [_Refusal(image.file, str(error)) for image, _ in images]
        self._write(method, images, explanation)
        return []

    def _call_method(self, method: str, images: Sequence[tuple[_Image, int]]) -> Explanation:
        called = self._methods[method]
        explanation: Explanation = called(
            self._classifier,
            torch.stack([image.inputs for image, _ in images]),
            [target for _, target in images],
            generator=torch.Generator().manual_seed(self._seed),
            progress=self._within(len(images)),
            **records_for(called, [image.record for image, _ in images]),
            **self._given[method],
        )
        return explanation

    def _write(self, method: str, images: Sequence[tuple[_Image, int]], explanation: Explanation) -> None:
        for i, (image, target) in enumerate(images):
            facts = {"category": self._classifier.categories[target], "image": str(image.file)}
            key = {"key": image.keys[method]}
            write_map(
                self._of(image.base, method),
                explanation,
                i,
                image.seen,
                self._classifier.names.short[target],
                facts | key,
            )
            if image.seen.note:
                self.outcome.notes[image.seen.note] += 1
            if warnings := explanation.certificates[i].warnings:
                self.outcome.warned[method] += 1
                self.outcome.warnings.setdefault(method, f"{image.file.name}: {warnings[0]}")
            self._count(made=1)

    def _within(self, count: int) -> Progress:
        """Scale the progress of one call to its share of the ``count`` heatmaps."""
        before = self.outcome.done_count

        def report(done: int, total: int, what: str) -> None:  # noqa: ARG001 - the bar says one thing
            self._report(before + count * done // max(total, 1))

        return report

    def _count(self, made: int = 0, kept: int = 0) -> None:
        self.outcome.n_made += made
        self.outcome.n_kept += kept
        self._report(self.outcome.done_count)

    def _report(self, done: int) -> None:
        """Report progress that never goes back: a call may report several rounds, and heatmaps count when written."""
        self._furthest = max(self._furthest, done)
        self._progress(self._furthest, self._total, "explaining")

    def _fault(self, sentence: str, maps: int) -> None:
        self.outcome.faults[sentence] += maps
        self._count()
