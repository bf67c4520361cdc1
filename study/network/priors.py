"""The learner's prior on disk: learned over a training set in one pass that may be killed, kept with its provenance."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.decoding import read_batches
from core.teaching.kfac import KroneckerPrior, Moments
from core.types import Progress, silent
from data.types import ImageSet
from study.workspace.files import write_whole

FORMAT = "foretell prior 1"
CHECKPOINT = "foretell prior checkpoint 2"
ENTRY = "foretell"
"""The entry of the file's header that holds everything but the tensors."""
SUMS = ("second", "fisher", "fourth")
"""The tensors of `Moments` that a checkpoint holds."""
EVERY = 120.0
"""Seconds between two checkpoints."""


@dataclass(frozen=True)
class StoredPrior:
    """A prior with where it came from: plain values, as `learn_prior` wrote them, and the SHA-256 of the file."""

    prior: KroneckerPrior
    provenance: dict[str, Any]
    digest: str


def learn_prior(
    classifier: Classifier,
    images: ImageSet,
    out: Path,
    *,
    tau: float = 0.0,
    damping: float = 0.0,
    resume: bool = True,
    every: float = EVERY,
    progress: Progress = silent,
) -> StoredPrior:
    """Estimate the prior over a training set and write it to ``out`` (safetensors).

    The sums so far lie next to it in ``<out>.checkpoint``, whole at any time; killed, the same call goes on from there
    and ends with the same bytes. ``resume=False`` begins again.

    Raises
    ------
    ForetellError
        A checkpoint that is damaged or of another classifier or set; what `core.teaching.kfac.fit_prior` refuses.
    """
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    if not resume:
        checkpoint.unlink(missing_ok=True)
    key = hashlib.sha256(f"{classifier.fingerprint}|{images.digest}".encode()).hexdigest()
    moments = _load_checkpoint(checkpoint, Moments(classifier.head), key)
    saved = time.monotonic()
    for inputs in read_batches(classifier, images.open, moments.count, len(images)):
        moments.add(classifier.features(inputs))
        progress(moments.count, len(images), f"learning the prior from {images.name}")
        if time.monotonic() - saved >= every:
            _keep(checkpoint, moments, key)
            saved = time.monotonic()
    prior = moments.prior(tau=tau, damping=damping)
    _write(out, prior, _provenance(classifier, images, prior, tau))
    checkpoint.unlink(missing_ok=True)
    return load_prior(out)


def _load_checkpoint(checkpoint: Path, moments: Moments, key: str) -> Moments:
    """Load the sums of an earlier run, or the empty ones."""
    if not checkpoint.exists():
        return moments
    again = f"Delete {checkpoint} or pass --restart to start again."
    known, tensors = _read(checkpoint, CHECKPOINT, again)
    if known["key"] != key:
        raise ForetellError(f"{checkpoint} is of another classifier or image set. {again}")
    moments.second, moments.fisher, moments.fourth = (tensors[name] for name in SUMS)
    moments.count = int(known["count"])
    return moments


def _keep(checkpoint: Path, moments: Moments, key: str) -> None:
    tensors = {name: getattr(moments, name) for name in SUMS}
    write_whole(checkpoint, _pack_tensors(CHECKPOINT, tensors, {"key": key, "count": moments.count}))


def _provenance(classifier: Classifier, images: ImageSet, prior: KroneckerPrior, tau: float) -> dict[str, Any]:
    return {
        "classifier": {"name": classifier.name, "fingerprint": classifier.fingerprint},
        "set": {"name": images.name, "digest": images.digest, "images": len(images), "skipped": len(images.skipped)},
        "tau": tau,
        "damping": prior.damping,
        "conditions": {"features": prior.conditions[0], "classes": prior.conditions[1]},
        "versions": {package: version(package) for package in ("torch", "torchvision", "numpy", "pillow")},
    }


def _write(out: Path, prior: KroneckerPrior, provenance: dict[str, Any]) -> None:
    tensors = {"head": prior.head, "features": prior.feature_covariance, "classes": prior.class_covariance}
    facts = {"images": prior.images, "conditions": prior.conditions, "provenance": provenance}
    write_whole(out, _pack_tensors(FORMAT, tensors, facts))


def load_prior(path: Path, classifier: Classifier | None = None) -> StoredPrior:
    """Read a prior that `learn_prior` wrote, and check that it is that of ``classifier``.

    Raises
    ------
    ForetellError
        Not there, damaged, something else, or learned from other weights.
    """
    if not path.is_file():
        raise ForetellError(f"There is no prior {path}. Make it with 'python foretell.py prior'.")
    facts, tensors = _read(path, FORMAT, "Make it again with 'python foretell.py prior'.")
    provenance = facts["provenance"]
    prior = KroneckerPrior(
        tensors["head"],
        tensors["features"],
        tensors["classes"],
        facts["images"],
        tuple(facts["conditions"]),
        provenance["damping"],
    )
    stored = StoredPrior(prior, provenance, facts["digest"])
    if classifier is not None and stored.provenance["classifier"]["fingerprint"] != classifier.fingerprint:
        raise ForetellError(
            f"The prior {path} was computed from {stored.provenance['classifier']['name']!r} with other weights than "
            f"{classifier.name!r} has now. Make it again with 'python foretell.py prior'."
        )
    return stored


def _pack_tensors(kind: str, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> bytes:
    """Pack safetensors with plain values and their SHA-256 in the header."""
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    content = {"format": kind, "digest": _digest(kind, facts, whole), "facts": facts}
    # In one entry: safetensors writes several in an order of their own each time.
    packed: bytes = save(whole, {ENTRY: json.dumps(content, sort_keys=True)})
    return packed


def _digest(kind: str, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Hash (SHA-256) all but the provenance: the same numbers made elsewhere are the same prior."""
    own = {name: value for name, value in facts.items() if name != "provenance"}
    total = hashlib.sha256(f"{kind}|{json.dumps(own, sort_keys=True)}".encode())
    for name in sorted(tensors):
        total.update(f"{name}{tuple(tensors[name].shape)}".encode() + tensors[name].numpy().data)
    return total.hexdigest()


def _read(path: Path, kind: str, remedy: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return facts and tensors of a file of `_pack_tensors`."""
    with suppress(SafetensorError, ValueError, KeyError, TypeError):
        with safe_open(path, "pt") as file:
            known = json.loads(file.metadata()[ENTRY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        facts: dict[str, Any] = known["facts"]
        sound = known["digest"] == _digest(kind, facts, tensors)
        if sound and all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
            return facts | {"digest": known["digest"]}, tensors
    raise ForetellError(f"{path} is damaged or has another format. {remedy}")
