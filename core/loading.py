"""What loading networks needs: torchvision on any build of torch, and the usual transforms."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

import torch
from PIL import Image
from torch import Tensor

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
        declare_missing_operators(error)
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    return importlib.import_module("torchvision")


def has_declared_operators() -> bool:
    """Tell whether `import_torchvision` had to declare operators."""
    return _repair is not None


def declare_missing_operators(error: RuntimeError) -> None:
    """Declare the operators for want of which torchvision failed; raise any other error again."""
    global _repair
    if "torchvision::nms" not in str(error):
        raise error
    if _repair is None:
        _repair = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for name in _MISSING_OPERATORS:
            _repair.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]


def imagenet_transforms(image: Image.Image) -> Tensor:
    """Make inputs (3, 224, 224): short side to 256, centre 224, normalised as for ImageNet, the usual default."""
    import_torchvision()
    functional = importlib.import_module("torchvision.transforms.functional")
    resized = functional.center_crop(functional.resize(image.convert("RGB"), 256), 224)
    pixels: Tensor = functional.to_tensor(resized)
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return (pixels - mean[:, None, None]) / std[:, None, None]
