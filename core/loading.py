"""Networks by name: torchvision's, or a user's own ``FILE.py:build``."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from urllib.error import URLError

import torch
from PIL import Image
from torch import Tensor, nn

from core.classifier import IMAGENET_MEAN_COLOUR, Classifier
from core.errors import ForetellError
from core.examination import examine

_MISSING_OPERATORS = ("nms", "qnms")
_repair: torch.library.Library | None = None  # alive as long as the process: dropping it undefines the operators


def import_torchvision() -> ModuleType:
    """Import torchvision, also where torch is a CPU build.

    The wheels of torchvision link CUDA; with a CPU build of torch their compiled operators do not load and
    the import fails for want of ``torchvision::nms``. Declaring the missing operators, after that failure only,
    lets models, weights' metadata, transforms and folders work; calling the operators themselves still fails.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    _declare_missing_operators()
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    return importlib.import_module("torchvision")


def has_declared_operators() -> bool:
    """Tell whether `import_torchvision` had to declare operators."""
    return _repair is not None


def _declare_missing_operators() -> None:
    global _repair
    if _repair is None:
        _repair = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for name in _MISSING_OPERATORS:
            _repair.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]


def load(spec: str, *, device: torch.device | str = "cpu", name: str | None = None, whole: bool = False) -> Classifier:
    """Load the classifier that ``spec`` names: ``FILE.py:build``, or a torchvision model with its default weights.

    ``resnet50:IMAGENET1K_V1`` is that model with other weights of torchvision's.

    A user's file defines ``build() -> nn.Module`` (any name after the colon) and optionally
    ``transforms(pil_image) -> (C, H, W)`` tensor, ``CATEGORIES`` (names in the order of the logits) and
    ``MEAN_COLOUR`` (R, G, B in 0..255, the neutral fill of masked-out parts). The file is executed: load only
    files you trust. ``name`` is what people call it; the file's own name by default. ``whole`` resizes the whole
    image to a torchvision network's input, whatever its aspect, where its own transforms would crop.

    Raises
    ------
    ForetellError
        Nothing of that name, no weights at hand, a file that does not build a classifier whose output is logits
        (`core.examination`), or ``whole`` for a network that brings its own transforms.
    """
    if ".py" in spec and whole:
        raise ForetellError(
            f'resize = "whole" is for torchvision networks; {Path(spec).name} has transforms of its own: resize there.'
        )
    place = torch.device(device)
    classifier = _from_file(spec, place, name) if ".py" in spec else _from_torchvision(spec, place, whole=whole)
    classifier.warnings = examine(classifier)
    return classifier


def _from_torchvision(spec: str, device: torch.device, *, whole: bool) -> Classifier:
    name, _, tag = spec.partition(":")
    import_torchvision()
    models = importlib.import_module("torchvision.models")
    known = models.list_models(module=models)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else "Give a torchvision name or FILE.py:build."
        raise ForetellError(f"Unknown classifier {name!r}. {hint}")
    offered = models.get_model_weights(name)
    tags = offered.__members__
    if tag and tag not in tags:
        raise ForetellError(f"{name} has no weights {tag!r}. torchvision offers: {', '.join(tags) or 'none'}.")
    weights = tags[tag] if tag else offered.DEFAULT
    try:
        module = models.get_model(name, weights=weights)
    except (URLError, OSError) as error:
        hub = Path(torch.hub.get_dir()) / "checkpoints" / Path(weights.url).name
        raise ForetellError(
            f"The weights of {name!r} could not be downloaded ({error}). Connect once, or put the file at {hub}."
        ) from error
    transforms = _squash(weights) if whole else weights.transforms()
    return Classifier(module, transforms, weights.meta["categories"], name=spec, device=device)


def _squash(weights: Any) -> Callable[[Image.Image], Tensor]:
    """Return transforms that resize the whole image to the input and normalise it as the weights demand."""
    (side,) = set(weights.transforms().crop_size)
    normalise = weights.transforms(resize_size=side, crop_size=side)

    def transforms(image: Image.Image) -> Tensor:
        squashed: Tensor = normalise(image.resize((side, side), Image.Resampling.BILINEAR))
        return squashed

    return transforms


def _from_file(spec: str, device: torch.device, name: str | None) -> Classifier:
    file, _, function = spec.rpartition(":") if ":" in Path(spec).name else (spec, "", "build")
    path = Path(file).expanduser()
    if not path.is_file():
        raise ForetellError(f"There is no file {path}. Give the path of a Python file as FILE.py:build.")
    module = execute_file(path)
    build = getattr(module, function, None)
    if not callable(build):
        offered = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise ForetellError(f"{path} has no function {function!r}. It defines: {', '.join(offered) or 'none'}.")
    try:
        network = build()
    except ForetellError:
        raise
    except (Exception, SystemExit) as error:  # the user's own code
        said = str(error).partition("\n")[0]
        raise ForetellError(
            f"{path}:{function} failed: {type(error).__name__}: {said}. Correct that function."
        ) from error
    if not isinstance(network, nn.Module):
        raise ForetellError(
            f"{path}:{function} returned {type(network).__name__}; it must return a torch.nn.Module that gives logits."
        )
    return Classifier(
        network,
        getattr(module, "transforms", imagenet_transforms),
        getattr(module, "CATEGORIES", None),
        name=name or path.stem,
        device=device,
        mean_colour=getattr(module, "MEAN_COLOUR", IMAGENET_MEAN_COLOUR),
    )


class _AsWritten(SourceFileLoader):
    """Compile the file as it is: Python's cache of compiled files checks only seconds and size."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - importlib's own signature
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def execute_file(path: Path) -> ModuleType:
    """Run a user's file as a module, with its own folder importable meanwhile: run only files you trust.

    Raises
    ------
    ForetellError
        The file fails.
    """
    with contextlib.suppress(ImportError):
        import_torchvision()  # most such files import it, at their top or later: there it has to load as it does here
    name = f"foretell_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_AsWritten(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ForetellError(f"{path} failed while it was read: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    return module


def imagenet_transforms(image: Image.Image) -> Tensor:
    """Make inputs (3, 224, 224): short side to 256, centre 224, normalised as for ImageNet, the usual default."""
    import_torchvision()
    functional = importlib.import_module("torchvision.transforms.functional")
    resized = functional.center_crop(functional.resize(image.convert("RGB"), 256), 224)
    pixels: Tensor = functional.to_tensor(resized)
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return (pixels - mean[:, None, None]) / std[:, None, None]
