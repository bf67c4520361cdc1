"""What loading networks needs: torchvision on any build of torch, a user's Python files, the usual transforms."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import torch
from PIL import Image
from torch import Tensor

from core.errors import ForetellError

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
