"""A user's own network: ``FILE.py:build``."""

from __future__ import annotations

import torch
from torch import nn

from core.errors import ForetellError
from core.loading import imagenet_transforms
from core.network.classifier import IMAGENET_MEAN_COLOUR, Classifier
from core.sources.outputs import build_classifier
from core.sources.spec import ModelSpec
from core.userfiles import describe_missing_file, execute_file, split_python


def load(spec: ModelSpec, device: torch.device) -> Classifier:
    """Load the network that a function of a Python file builds; the file is executed.

    The file defines ``build() -> nn.Module`` (any name after the colon) and optionally
    ``transforms(pil_image) -> (C, H, W)`` tensor, ``CATEGORIES`` (names in the order of the logits) and
    ``MEAN_COLOUR`` (R, G, B in 0..255, the neutral fill of masked-out parts).
    """
    spec.check_settings()
    spec.refuse_whole()
    named = split_python(spec.name)
    if named is None:
        raise ForetellError(f"{spec.name!r} is no Python file. Give the path of one that ends in .py as FILE.py:build.")
    path, function = spec.find_path(named[0], runs=True), named[1] or "build"
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
        missing = describe_missing_file(path, error)
        raise ForetellError(
            missing or f"{path}:{function} failed: {type(error).__name__}: {said}. Correct that function."
        ) from error
    if not isinstance(network, nn.Module):
        raise ForetellError(
            f"{path}:{function} returned {type(network).__name__}; it must return a torch.nn.Module that gives logits."
        )
    return build_classifier(
        network,
        getattr(module, "transforms", imagenet_transforms),
        getattr(module, "CATEGORIES", None),
        name=spec.title or path.stem,
        device=device,
        mean_colour=getattr(module, "MEAN_COLOUR", IMAGENET_MEAN_COLOUR),
    )
