"""The models that installed packages offer by name, and what loading one would download. Nothing is fetched here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from core.errors import ForetellError
from core.loading import import_torchvision
from core.sources.local import is_fetched, list_fetched_models
from core.sources.spec import ModelSpec, import_extra, suggest_names

HUB = "https://huggingface.co/"
MEBIBYTE = 2**20
CLIP_FILES = ("open_clip_model", "open_clip_pytorch_model")
"""Names of open_clip's weights in a repository that names no file, without ending."""
CLIP_CACHE = Path("~/.cache/clip")
"""Folder of open_clip's downloads from other addresses."""


@dataclass(frozen=True)
class Weights:
    """The weights of a model that is offered by name.

    Attributes
    ----------
    origin
        The address that they are downloaded from; "" where the package does not say.
    size
        Bytes of the download; None where the package does not say.
    is_local
        Whether they are on this machine already.
    """

    origin: str
    size: int | None
    is_local: bool


def list_offers(source: str) -> list[str]:
    """List the names of models with weights that a source offers, as they follow its name and a colon.

    Raises
    ------
    ForetellError
        Its package is not installed, or the source has no list.
    """
    if source not in _LISTS:
        raise ForetellError(f"{source} has no list of names on this machine. It has lists of: {', '.join(_LISTS)}.")
    return _LISTS[source]()


def describe_weights(source: str, name: str) -> Weights:
    """Describe the weights of a model of `list_offers`.

    Raises
    ------
    ForetellError
        Its package is not installed, or it offers no such model.
    """
    known = list_offers(source)
    if name not in known:
        raise ForetellError(f"{source} offers no model {name!r}. {suggest_names(name, known, 'Search for another.')}")
    return _WEIGHTS[source](name)


def _list_torchvision() -> list[str]:
    models = _torchvision_models()
    return [name for name in models.list_models(module=models) if models.get_model_weights(name).__members__]


def _describe_torchvision(name: str) -> Weights:
    weights = _torchvision_models().get_model_weights(name).DEFAULT
    file = Path(torch.hub.get_dir()) / "checkpoints" / Path(weights.url).name
    size = weights.meta.get("_file_size")
    return Weights(weights.url, None if size is None else int(size * MEBIBYTE), file.is_file())


def _torchvision_models() -> Any:
    import_torchvision()
    return importlib.import_module("torchvision.models")


def _list_timm() -> list[str]:
    listed: list[str] = _import("timm", "timm", "timm").list_pretrained()
    return listed


def _describe_timm(name: str) -> Weights:
    config = _import("timm", "timm", "timm").get_pretrained_cfg(name)
    repository = config.hf_hub_id or f"timm/{name}"
    return Weights(f"{HUB}{repository}", None, f"timm:{name}" in list_fetched_models())


def _list_clip() -> list[str]:
    return [f"{name}:{tag}" for name, tag in _import("open_clip", "open_clip_torch", "clip").list_pretrained()]


def _describe_clip(name: str) -> Weights:
    model, _, tag = name.partition(":")
    config = _import("open_clip", "open_clip_torch", "clip").get_pretrained_cfg(model, tag)
    owner, name, file = (str(config.get("hf_hub") or "") + "//").split("/")[:3]
    if owner:  # open_clip prefers it to another address
        return Weights(f"{HUB}{owner}/{name}", None, is_fetched(f"{owner}/{name}", [Path(file).stem, *CLIP_FILES]))
    url = str(config.get("url") or "")
    return Weights(url, None, (CLIP_CACHE.expanduser() / Path(url).name).is_file())


def _import(module: str, package: str, source: str) -> Any:
    import_torchvision()  # both packages import it
    return import_extra(module, package, ModelSpec(source, "NAME", {}, Path()))


_LISTS: dict[str, Callable[[], list[str]]] = {
    "torchvision": _list_torchvision,
    "timm": _list_timm,
    "clip": _list_clip,
}
_WEIGHTS: dict[str, Callable[[str], Weights]] = {
    "torchvision": _describe_torchvision,
    "timm": _describe_timm,
    "clip": _describe_clip,
}
