"""A classifier around a network: weights stay unchanged, threads take turns, batches fit the memory."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from core.class_names import ClassNames, is_imagenet, number_repeated_names
from core.errors import ForetellError
from core.network import state
from core.network.device import chunk_size, exact_arithmetic, in_chunks, send
from core.network.geometry import Geometry, measure_geometry
from core.network.head import split_head
from core.network.inference import make_faster_copy, make_prediction_copy, unwrap_compiled, use_precision
from core.types import Progress, silent

IMAGENET_MEAN_COLOUR = (124, 116, 104)
PROBE_SIDE = 256
PROBE_SHAPE = (97, 131, 3)
"""An image of noise that is neither square nor of a usual size: every resize, crop and normalisation shows in it."""
COLOURS = 3
REPEATS = 16
"""Number of times one image is transformed to find out whether the transforms are random."""


class Classifier:
    """A trained image classifier.

    Parameters
    ----------
    module
        Heatmaps inputs (B, C, H, W) to logits (B, K). It is put in eval mode and on ``device``; nothing else of it
        is ever changed.
    transforms
        PIL image -> input (C, H, W).
    categories
        The K class names in the order of the logits; None numbers them.
    name
        Its name for display.
    mean_colour
        (R, G, B) in 0..255: the neutral colour of masked-out parts under ``fill="mean"``.

    Notes
    -----
    A network shared by two threads is not safe as soon as one of them hooks into it (measured: 47 of 47
    gradients silently wrong), so every use goes through `exclusive`, prediction included.
    """

    def __init__(
        self,
        module: nn.Module,
        transforms: Callable[[Image.Image], Tensor],
        categories: Sequence[str] | None = None,
        *,
        name: str,
        device: torch.device | str = "cpu",
        mean_colour: tuple[int, int, int] = IMAGENET_MEAN_COLOUR,
    ) -> None:
        self.name = name
        self.device = torch.device(device)
        self.mean_colour = mean_colour
        self.precision = torch.float32
        """Type of the factors in predictions, of `predict_in`; gradients are float32."""
        self._module = unwrap_compiled(module).to(self.device).eval()
        self._transforms = transforms
        self.copied_from: Classifier | None = None
        """The classifier of whose network this one's is a copy with other weights."""
        self.warnings: tuple[str, ...] = ()
        """Warnings for every heatmap of this network: what `core.network.examination` found."""
        self._lock = threading.RLock()
        self._geometries: dict[tuple[int, int], Geometry | None] = {}
        state.refuse_bad_weights(self._module, name)
        self.categories = self._name_classes(categories)

    def _name_classes(self, categories: Sequence[str] | None) -> tuple[str, ...]:
        outputs = self._outputs()
        if categories is None:
            return tuple(f"class {k}" for k in range(outputs))
        categories = tuple(map(str, categories))
        if len(categories) != outputs:
            raise ForetellError(
                f"{self.name} gives {outputs} logits but names {len(categories)} categories; name each class once."
            )
        if is_imagenet(categories):
            return tuple(number_repeated_names(categories))
        repeated = ClassNames(categories).find_repeated()
        if repeated is not None:
            raise ForetellError(f"{self.name} has two classes named {repeated!r}. Give each class a name of its own.")
        return categories

    @cached_property
    def names(self) -> ClassNames:
        """Return the class names with their short forms, to find classes by."""
        return ClassNames(self.categories)

    def _outputs(self) -> int:
        """Return the number of logits for an image: the first run of the transforms and the network."""
        try:
            return self.logits(self.fill("black").expand(1, *self.input_shape)).shape[1]
        except (ForetellError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # the user's own code
            said = str(error).partition("\n")[0]
            raise ForetellError(
                f"{self.name} fails on an image as its transforms give it ({type(error).__name__}: {said}). "
                + state.remedy(self._module)
            ) from error

    @property
    def file_name(self) -> str:
        """Return its name as part of a file's name, on any system."""
        return re.sub(r"[^\w.+-]+", "_", self.name).strip("_") or "network"

    @contextmanager
    def exclusive(self) -> Iterator[nn.Module]:
        """Lock the network itself for one thread at a time (re-entrant within a thread)."""
        with self._lock:
            yield self._module

    @property
    def layout(self) -> torch.memory_format:
        """Memory format of inputs for predictions and `differentiable`."""
        return torch.contiguous_format if self._copy is self._module else torch.channels_last

    @contextmanager
    def differentiable(self) -> Iterator[nn.Module]:
        """Return the network of `use_fast_copy`, for gradients of its input."""
        with self.use_fast_copy() as module, self.gradients():
            yield module

    @contextmanager
    def gradients(self) -> Iterator[None]:
        """Compute in float32, and say in one sentence that no gradient passes through the network."""
        try:
            with exact_arithmetic(self.device):
                yield
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            said = str(error).partition("\n")[0]
            raise ForetellError(
                f"No gradient passes through {self.name} ({said}): parts of it may be numpy, quantised or detached. "
                "Use a method that needs only predictions, such as occlusion, rise or bayesian_teaching."
            ) from error

    @contextmanager
    def use_fast_copy(self) -> Iterator[nn.Module]:
        """Return the fast copy, which needs no lock, or else the network itself."""
        if self._copy is self._module:
            with self.exclusive() as module:
                yield module
        else:
            yield self._copy

    def preprocess(self, image: Image.Image) -> Tensor:
        """Return the network's input (C, H, W), float32 on the CPU, for an image of any size and mode."""
        return self._transforms(image.convert("RGB")).detach().to("cpu", torch.float32)

    @cached_property
    def input_shape(self) -> tuple[int, int, int]:
        """Return (C, H, W) of the network's input."""
        channels, height, width = self.preprocess(Image.new("RGB", (PROBE_SIDE, PROBE_SIDE))).shape
        return channels, height, width

    def fill(self, kind: str) -> Tensor:
        """Return the input (C, H, W) of an image of one colour, ``"black"`` or ``"mean"``, through the transforms."""
        colours = {"black": (0, 0, 0), "mean": self.mean_colour}
        if kind not in colours:
            raise ForetellError(f"Unknown fill {kind!r}. Use 'mean' or 'black'.")
        return self.preprocess(Image.new("RGB", (PROBE_SIDE, PROBE_SIDE), colours[kind]))

    @cached_property
    def black_and_white(self) -> tuple[Tensor, Tensor]:
        """Return the inputs (C, H, W) of a black and of a white image: between them lie all images."""
        white = Image.new("RGB", (PROBE_SIDE, PROBE_SIDE), (255, 255, 255))
        return self.fill("black"), self.preprocess(white)

    @cached_property
    def architecture(self) -> str:
        """Name the kind of network by its class, number of parameters and input size, whatever its weights are."""
        parameters = sum(parameter.numel() for parameter in self._module.parameters())
        return f"{type(self._module).__name__}, {parameters} parameters, {' x '.join(map(str, self.input_shape))}"

    @cached_property
    def transforms_digest(self) -> str:
        """Return the SHA-256 of what the transforms make of one fixed image, which the fingerprint does not cover.

        Empty where they are random: then no digest can tell two of them apart.
        """
        if self.transforms_vary:
            return ""
        noise = np.random.default_rng(0).integers(0, 256, PROBE_SHAPE, dtype=np.uint8)
        seen = self.preprocess(Image.fromarray(noise))
        return hashlib.sha256(f"{tuple(seen.shape)}".encode() + seen.numpy().tobytes()).hexdigest()

    @cached_property
    def transforms_vary(self) -> bool:
        """Tell whether the transforms make different inputs of one image."""
        noise = np.random.default_rng(0).integers(0, 256, (PROBE_SIDE, PROBE_SIDE, 3), np.uint8)
        first, *others = (self.preprocess(Image.fromarray(noise)) for _ in range(REPEATS))
        return not all(torch.equal(first, other) for other in others)

    def geometry(self, size: tuple[int, int]) -> Geometry | None:
        """Locate the network's input in photographs of ``size`` = (width, height); None where it is unknown."""
        if size not in self._geometries:
            try:
                self._geometries[size] = measure_geometry(self.preprocess, size)
            except Exception:  # the user's own code, which may take photographs and no images of coordinates
                self._geometries[size] = None
        return self._geometries[size]

    def render_input(self, inputs: Tensor) -> Image.Image:
        """Show an input (C, H, W) as RGB, between what the transforms make of black and of white."""
        low, span = self._range
        shown = (inputs - low) / span
        if not torch.isfinite(shown).all():  # transforms that depend on each image's own values
            shown = (inputs - inputs.min()) / (inputs.max() - inputs.min()).clamp(min=torch.finfo(inputs.dtype).tiny)
        if len(shown) != COLOURS:
            shown = shown.mean(0).expand(COLOURS, -1, -1)
        return Image.fromarray((255 * shown.clamp(0, 1)).round().to(torch.uint8).permute(1, 2, 0).numpy())

    @cached_property
    def _range(self) -> tuple[Tensor, Tensor]:
        """Return the input for black and its distance to white, (C, 1, 1) each: of the photograph, not of padding."""
        low, high = self.black_and_white
        span = high - low
        place = span.abs().sum(0).argmax()
        return low.flatten(1)[:, place][:, None, None], span.flatten(1)[:, place][:, None, None]

    def logits(
        self, inputs: Tensor, *, chunk: int | None = None, progress: Progress = silent, keep: bool = False
    ) -> Tensor:
        """Compute logits (B, K), float32 on the CPU, of inputs (B, C, H, W).

        With ``keep`` they stay on the network's device, and the processor does not wait for them.
        """
        return self._run_in_batches(self._forward, inputs, chunk, progress, "predicting", keep)

    def probabilities(self, inputs: Tensor, *, chunk: int | None = None, progress: Progress = silent) -> Tensor:
        """Compute softmax probabilities (B, K), float32 on the CPU, of inputs (B, C, H, W)."""
        return self.logits(inputs, chunk=chunk, progress=progress).softmax(1)

    def features(self, inputs: Tensor, *, chunk: int | None = None, progress: Progress = silent) -> Tensor:
        """Compute the input of the last linear layer (B, M), float32 on the CPU, for inputs (B, C, H, W).

        Raises
        ------
        ForetellError
            The network does not end in one linear layer.
        """
        return self._run_in_batches(self._compute_features, inputs, chunk, progress, "reading features")

    @property
    def head(self) -> Tensor:
        """Return the weights of the last linear layer with its bias as last column, (K, M + 1), float64."""
        _, linear = self._split
        bias = linear.bias if linear.bias is not None else linear.weight.new_zeros(linear.out_features)
        return torch.cat([linear.weight, bias[:, None]], 1).detach().to("cpu", torch.float64)

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """List the names of the network's leaf modules, in order."""
        return tuple(name for name, module in self._module.named_modules() if not list(module.children()))

    @cached_property
    def fingerprint(self) -> str:
        """Return the SHA-256 over the structure and every parameter and buffer, and a precision below float32."""
        whole = state.fingerprint(self._module)
        if self.precision == torch.float32:
            return whole
        return hashlib.sha256(f"{whole}|{self.precision}".encode()).hexdigest()

    def predict_in(self, precision: torch.dtype) -> None:
        """Predict with factors of this type from now on; `core.network.precision` checks that the logits allow it."""
        self.precision = precision
        self.name = f"{self.name} ({str(precision).removeprefix('torch.')})"
        for form in ("_predictor", "_trunk", "fingerprint"):
            vars(self).pop(form, None)

    def _forward(self, batch: Tensor) -> Tensor:
        logits = self._predictor(batch.contiguous(memory_format=self.layout))
        if not isinstance(logits, Tensor) or logits.ndim != 2:
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise ForetellError(f"{self.name} returned {got}; wrap it so that it returns one tensor of logits (B, K).")
        return logits

    def _compute_features(self, batch: Tensor) -> Tensor:
        seen: Tensor = self._trunk(batch.contiguous(memory_format=self.layout))
        return seen

    def _run_in_batches(
        self,
        forward: Callable[[Tensor], Tensor],
        inputs: Tensor,
        chunk: int | None,
        progress: Progress,
        what: str,
        keep: bool = False,
    ) -> Tensor:
        done = 0

        @torch.inference_mode()
        def report(batch: Tensor) -> Tensor:
            nonlocal done
            # A network may begin with an in-place operation: it gets a copy, never the caller's tensor.
            with use_precision(self.device, self.precision):
                output = forward(send(batch, self.device, copy=True)).float()
            done += len(batch)
            progress(done, len(inputs), what)
            return output

        outputs = in_chunks(report, inputs, chunk or chunk_size(inputs[0], self.device)).clone()
        return outputs if keep else outputs.cpu()

    @cached_property
    def _copy(self) -> nn.Module:
        """Return a faster copy that can be differentiated, or the network itself where none can be made."""
        return make_faster_copy(self._module, self.fill("mean")[None].to(self.device))

    @cached_property
    def _predictor(self) -> nn.Module:
        """Return the fastest form of the network that gives its logits."""
        return make_prediction_copy(self._copy, self.fill("mean")[None].to(self.device), self.precision)

    @cached_property
    def _trunk(self) -> nn.Module:
        """Return the fastest form of the network without its last layer."""
        trunk, _ = self._split
        probe = self.fill("mean")[None].to(self.device)
        return make_prediction_copy(make_faster_copy(trunk, probe), probe, self.precision)

    @cached_property
    def _split(self) -> tuple[nn.Module, nn.Linear]:
        """Return the network without its last linear layer, and that layer."""
        probe = torch.stack([self.fill("black"), self.fill("mean")]).to(self.device)
        return split_head(self._module, probe, self.name)
