"""Exported programs: ``FILE.pt2`` of ``torch.export.save``, ``FILE.pt`` of ``torch.jit.save``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.export.passes
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor, nn

from core.classifier import Classifier
from core.errors import ForetellError
from core.loading import import_torchvision
from core.sources.outputs import build_classifier, mean_colour
from core.sources.spec import EXPORTED, ModelSpec

PROGRAM = ".pt2"
Channels = tuple[float, float, float]


class Sidecar(BaseModel):
    """``NAME.json`` next to an exported program: what the program itself does not say.

    Attributes
    ----------
    categories
        Class names in the order of the logits.
    mean, std
        Of the channels R, G, B in 0..1, by which inputs are normalised; by default ImageNet's.
    size
        (height, width) of the input in pixels; by default the program's own, else 224.
    resize
        Pixels of the short side before the centre is cropped; by default 256/224 of the input's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    categories: tuple[str, ...] | None = None
    mean: Channels = (0.485, 0.456, 0.406)
    std: Channels = (0.229, 0.224, 0.225)
    size: tuple[int, int] | None = None
    resize: int | None = Field(default=None, gt=0)


class Program(nn.Module):
    """An exported program or TorchScript, as a network of any batch size.

    Parameters
    ----------
    program
        Inputs (B, C, H, W) to logits (B, K); it is in evaluation mode already.
    batch
        The one batch size that it was exported for, or None for any.
    """

    def __init__(self, program: nn.Module, batch: int | None = None) -> None:
        super().__init__()
        self.program = program
        self.batch = batch

    def train(self, mode: bool = True) -> Program:  # noqa: ARG002 - torch's own signature
        """Stay in evaluation mode: an exported program has no other."""
        self.training = False
        return self

    def forward(self, inputs: Tensor) -> Any:
        """Return the program's output, image by image where it was exported for one image."""
        if self.batch is None or len(inputs) == self.batch:
            return self.program(inputs)
        return torch.cat([self.program(one[None]) for one in inputs])


def load(spec: ModelSpec, device: torch.device) -> Classifier:
    """Load an exported program or TorchScript; the file is executed: load only files you trust.

    The input size is the program's; ``NAME.json`` next to it (`Sidecar`) gives class names and normalisation, and the
    setting ``names`` a file of one class name per line.
    """
    spec.check_settings("names")
    names = spec.read_names()
    spec.refuse_whole()
    path = spec.find_path(spec.name, runs=True)
    if path.suffix.lower() not in EXPORTED:
        raise ForetellError(f"{path.name} is no exported program. They end in {', '.join(EXPORTED)}.")
    if not path.is_file():
        raise ForetellError(f"There is no file {path}. Give the path of an exported program, such as network.pt2.")
    facts = _read_sidecar(path.with_suffix(".json"))
    program, size = (_load_program if path.suffix.lower() == PROGRAM else _load_script)(path, device)
    height, width = facts.size or size or (224, 224)
    return build_classifier(
        program,
        _make_transforms(facts, height, width),
        names or facts.categories,
        name=spec.title or path.stem,
        device=device,
        mean_colour=mean_colour(facts.mean),
    )


def _read_sidecar(path: Path) -> Sidecar:
    if not path.is_file():
        return Sidecar()
    try:
        return Sidecar.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        raise ForetellError(
            f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}. It takes: {', '.join(Sidecar.model_fields)}."
        ) from error
    except (OSError, ValueError) as error:
        raise ForetellError(f"{path} is not valid JSON ({error}). Correct it or remove it.") from error


def _load_program(path: Path, device: torch.device) -> tuple[Program, tuple[int, int] | None]:
    try:
        exported = torch.export.load(path)
        exported = torch.export.passes.move_to_device_pass(exported, device)
        shapes = [node.meta["val"].shape for node in exported.graph.nodes if _is_input(node, exported)]
    except Exception as error:  # of torch, of zipfile, and of whatever the program names
        raise _not_loadable(path, error) from error
    if len(shapes) != 1 or len(shapes[0]) != 4:
        given = " and ".join(str(tuple(shape)) for shape in shapes) or "nothing"
        raise ForetellError(f"{path} takes {given} and not one batch of images (B, C, H, W). Export such a network.")
    batch, _, height, width = shapes[0]
    if isinstance(batch, int) and batch != 1:
        raise ForetellError(
            f"{path} was exported for batches of exactly {batch} images. Export it for any number: "
            'torch.export.export(network, (images,), dynamic_shapes=({0: torch.export.Dim("batch")},)).'
        )
    fixed = isinstance(height, int) and isinstance(width, int)
    return Program(exported.module(), batch if isinstance(batch, int) else None), (height, width) if fixed else None


def _is_input(node: Any, exported: Any) -> bool:
    return node.op == "placeholder" and node.name in exported.graph_signature.user_inputs


def _load_script(path: Path, device: torch.device) -> tuple[Program, None]:
    try:
        script = torch.jit.load(path, map_location=device)  # type: ignore[no-untyped-call]
    except Exception as error:  # of torch and of the program's own operators
        raise _not_loadable(path, error) from error
    return Program(script.eval()), None


def _not_loadable(path: Path, error: Exception) -> ForetellError:
    said = str(error).strip().partition("\n")[0].rstrip(".")
    return ForetellError(
        f"{path} is not a program of torch.export.save or torch.jit.save ({type(error).__name__}: {said}). Weights "
        "alone need their network: load both in FILE.py:build."
    )


def _make_transforms(facts: Sidecar, height: int, width: int) -> Callable[[Image.Image], Tensor]:
    """Return transforms that resize the short side, crop the centre to the input, and normalise."""
    import_torchvision()
    from torchvision.transforms import functional

    short = facts.resize or max(round(height * 256 / 224), round(width * 256 / 224))

    def transforms(image: Image.Image) -> Tensor:
        cropped = functional.center_crop(functional.resize(image, short), [height, width])
        pixels: Tensor = functional.normalize(functional.to_tensor(cropped), list(facts.mean), list(facts.std))
        return pixels

    return transforms
