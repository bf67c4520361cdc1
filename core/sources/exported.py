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

from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.classifier import Classifier
from core.sources.outputs import GreyTransforms, average, build_classifier, mean_colour
from core.sources.spec import EXPORTED, ModelSpec
from core.text import read_text

PROGRAM = ".pt2"
BATCHES = (1, 2, 3, 4, 8, 16, 32, 64, 128)
"""Numbers of images that a script is tried with, the first of which it takes."""
Channels = tuple[float] | tuple[float, float, float]


class Sidecar(BaseModel):
    """``NAME.json`` next to an exported program: what the program itself does not say.

    Attributes
    ----------
    categories
        Class names in the order of the logits.
    mean, std
        Of the channels R, G, B in 0..1, or of grey, by which inputs are normalised; by default ImageNet's.
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

    def in_grey(self) -> Sidecar:
        """Return the same for a network of one channel."""
        return self.model_copy(update={"mean": average(self.mean), "std": average(self.std)})


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
    program, channels, size = (_load_program if path.suffix.lower() == PROGRAM else _load_script)(path, device)
    facts = facts.in_grey() if channels == 1 else facts
    height, width = facts.size or size or (224, 224)
    transforms = _make_transforms(facts, height, width)
    transforms = GreyTransforms(transforms) if channels == 1 else transforms
    if path.suffix.lower() != PROGRAM:
        program.batch = _find_batch(program, transforms(Image.new("RGB", (width, height))).to(device), path)
    return build_classifier(
        program,
        transforms,
        names or facts.categories,
        name=spec.title or path.stem,
        device=device,
        mean_colour=mean_colour(facts.mean),
    )


def _read_sidecar(path: Path) -> Sidecar:
    if not path.is_file():
        return Sidecar()
    try:
        return Sidecar.model_validate(json.loads(read_text(path)))
    except ValidationError as error:
        first = error.errors()[0]
        raise ForetellError(
            f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}. It takes: {', '.join(Sidecar.model_fields)}."
        ) from error
    except (OSError, ValueError) as error:
        raise ForetellError(f"{path} is not valid JSON ({error}). Correct it or remove it.") from error


def _load_program(path: Path, device: torch.device) -> tuple[Program, int | None, tuple[int, int] | None]:
    try:
        exported = torch.export.load(path)
        exported = torch.export.passes.move_to_device_pass(exported, device)
        shapes = [node.meta["val"].shape for node in exported.graph.nodes if _is_input(node, exported)]
    except Exception as error:  # of torch, of zipfile, and of whatever the program names
        raise _not_loadable(path, error) from error
    if len(shapes) != 1 or len(shapes[0]) != 4:
        given = " and ".join(str(tuple(shape)) for shape in shapes) or "nothing"
        raise ForetellError(f"{path} takes {given} and not one batch of images (B, C, H, W). Export such a network.")
    batch, channels, height, width = shapes[0]
    if isinstance(batch, int) and batch != 1:
        raise _fixed_batch(path, batch)
    fixed = isinstance(height, int) and isinstance(width, int)
    program = Program(exported.module(), batch if isinstance(batch, int) else None)
    return program, channels if isinstance(channels, int) else None, (height, width) if fixed else None


def _is_input(node: Any, exported: Any) -> bool:
    return node.op == "placeholder" and node.name in exported.graph_signature.user_inputs


def _load_script(path: Path, device: torch.device) -> tuple[Program, int | None, None]:
    try:
        script = torch.jit.load(path, map_location=device)  # type: ignore[no-untyped-call]
    except Exception as error:  # of torch and of the program's own operators
        raise _not_loadable(path, error) from error
    kernels = (value for value in script.state_dict().values() if isinstance(value, Tensor) and value.ndim == 4)
    return Program(script.eval()), next((kernel.shape[1] for kernel in kernels), None), None


@torch.no_grad()
def _find_batch(program: Program, inputs: Tensor, path: Path) -> int | None:
    """Find whether a script takes one image at a time, as one that was traced with one may; None for any number."""

    def runs(count: int) -> bool:
        try:
            return len(program(inputs.expand(count, *inputs.shape))) == count
        except Exception:  # of the program's own operators; of a single image it is said where the classifier is made
            return False

    fixed = next((count for count in BATCHES if runs(count)), 1)
    if fixed > 1:
        raise _fixed_batch(path, fixed)
    return None if runs(2) else 1


def _fixed_batch(path: Path, batch: int) -> ForetellError:
    return ForetellError(
        f"{path} was exported for batches of exactly {batch} images. Export it for any number: "
        'torch.export.export(network, (images,), dynamic_shapes=({0: torch.export.Dim("batch")},)).'
    )


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
