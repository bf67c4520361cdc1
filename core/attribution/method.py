"""The common parts of every heatmap method: checked inputs, a random seed, certificates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial, wraps
from importlib.metadata import version
from typing import Any, Protocol, overload

import torch
from torch import Tensor

from core.attribution.common import in_parts, prepare_inputs
from core.attribution.cost import CostRule
from core.attribution.records import Family, MethodRecord
from core.attribution.signs import EVIDENCE, Sign
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import draw_seed
from core.parameters import join_signatures
from core.types import Certificate, Explanation, Progress, silent

ROUNDING, TINY = 1e-6, 1e-15
"""Share of its zero, and the value, by which a heatmap may differ from its zero by rounding and count as empty."""


class HeatmapMethod(Protocol):
    """A method as it is called: ``heatmap_method`` makes one of a function of a `Query`."""

    __name__: str

    def __call__(
        self,
        classifier: Classifier,
        images: Tensor,
        targets: Sequence[int],
        *,
        generator: torch.Generator | None = None,
        progress: Progress = silent,
        **parameters: Any,
    ) -> Explanation:
        """Explain one target class of each of images (B, C, H, W), in the network's input space."""


@overload
def heatmap_method(function: Callable[..., Explanation]) -> HeatmapMethod: ...
@overload
def heatmap_method(
    *,
    family: Family | None = None,
    sign: Sign | Callable[[Mapping[str, Any]], Sign] = EVIDENCE,
    cost: CostRule | None = None,
) -> Callable[[Callable[..., Explanation]], HeatmapMethod]: ...
def heatmap_method(
    function: Callable[..., Explanation] | None = None,
    *,
    family: Family | None = None,
    sign: Sign | Callable[[Mapping[str, Any]], Sign] = EVIDENCE,
    cost: CostRule | None = None,
) -> HeatmapMethod | Callable[[Callable[..., Explanation]], HeatmapMethod]:
    """Make a `HeatmapMethod` of ``function(query, *, ...)``, whose keyword arguments are the method's parameters.

    The rest is its `MethodRecord`; as ``@heatmap_method`` alone, nothing is known of it before it runs.
    """
    record = MethodRecord(family, sign, cost)
    return _make_method(function, record) if function else partial(_make_method, record=record)


def _make_method(function: Callable[..., Explanation], record: MethodRecord) -> HeatmapMethod:
    @wraps(function)
    def method(
        classifier: Classifier,
        images: Tensor,
        targets: Sequence[int],
        *,
        generator: torch.Generator | None = None,
        progress: Progress = silent,
        **parameters: Any,
    ) -> Explanation:
        checked = prepare_inputs(classifier, images, targets)
        return function(Query(function.__name__, classifier, *checked, progress, generator), **parameters)

    method.__signature__ = join_signatures(HeatmapMethod.__call__, function)  # type: ignore[attr-defined]
    method.record = record  # type: ignore[attr-defined]  # a plain function of a network has none
    return method


@dataclass(frozen=True)
class Query:
    """Images and classes to explain, as a method gets them: checked, and a copy of the caller's.

    Attributes
    ----------
    method
        Its registered name, which is the name of its function.
    inputs, classes
        (B, C, H, W) float32 and (B,) int64, on the CPU.
    progress
        ``progress(done, total, what)``; it may raise to cancel.
    """

    method: str
    classifier: Classifier
    inputs: Tensor
    classes: Tensor
    progress: Progress
    generator: torch.Generator | None

    @cached_property
    def seed(self) -> int:
        """The random seed, drawn once from the caller's generator."""
        return draw_seed(self.generator or torch.Generator().manual_seed(0))

    def in_parts(
        self,
        compute: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
        what: str = "",
        inputs: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Compute heatmaps and logits of ``inputs`` (the query's own), as many at a time as fit, reporting progress."""
        inputs = self.inputs if inputs is None else inputs
        what = what or self.method.replace("_", " ")
        return in_parts(compute, inputs, self.classes, self.classifier.device, self.progress, what)

    def explain(
        self,
        maps: Tensor,
        facts: Sequence[dict[str, Any]] = (),
        *,
        zero: float | Tensor = 0.0,
        error: Tensor | None = None,
        empty: str = "",
        logits: Tensor | None = None,
        **shared: Any,
    ) -> Explanation:
        """Make the explanation with heatmaps ``maps`` (B, H, W) and their Monte Carlo ``error``, certificates included.

        Parameters
        ----------
        facts
            What the certificate of each image says beyond what those of all say, ``shared``.
        zero
            The value that means no evidence, of all or of each image.
        empty
            What may help where a heatmap is empty; its certificate warns of that in any case.
        logits
            (B, K), where they are known: they save a forward pass.

        Raises
        ------
        ForetellError
            A heatmap has values that are no numbers.
        """
        flat = maps.flatten(1)
        ends = torch.stack([flat.amin(1), flat.amax(1)], 1)  # ten times as fast as torch.aminmax
        self._refuse_no_numbers(ends)
        own = list(facts) or [{} for _ in maps]
        if error is not None:
            largest = error.flatten(1).amax(1).tolist()
            own = [{"standard_error": e} | each for e, each in zip(largest, own, strict=True)]
        noise = None if error is None else error.float()
        known = [shared | each for each in own]
        origins = torch.as_tensor(zero).expand(len(maps)).tolist()
        for facts_of_one, ends_of_one, origin in zip(known, ends.tolist(), origins, strict=True):
            if _is_empty(ends_of_one, origin):
                facts_of_one["warnings"] = (*facts_of_one.get("warnings", ()), f"{_tell_empty(origin)} {empty}".strip())
        return Explanation(maps.float(), zero, self._certify(known, logits), noise)

    def _refuse_no_numbers(self, ends: Tensor) -> None:
        """Refuse heatmaps by their smallest and largest values (B, 2), which are no numbers where any value is none."""
        wrong = (~ends.isfinite()).any(1).nonzero().flatten().tolist()
        if wrong:
            raise ForetellError(
                f"{self.method} gives {self.classifier.name} a heatmap with values that are no numbers (image "
                f"{wrong[0] + 1} of {len(ends)}): somewhere it divides by 0 or overflows. Use another method."
            )

    def _certify(self, known: Sequence[dict[str, Any]], logits: Tensor | None) -> tuple[Certificate, ...]:
        logits = self.classifier.logits(self.inputs) if logits is None else logits
        probabilities = logits.softmax(1).gather(1, self.classes[:, None])[:, 0].tolist()
        return tuple(
            Certificate(
                method=self.method,
                target=target,
                fingerprint=self.classifier.fingerprint,
                probability=probability,
                versions=versions(),
                **facts | {"warnings": (*facts.get("warnings", ()), *self.classifier.warnings)},
            )
            for target, probability, facts in zip(self.classes.tolist(), probabilities, known, strict=True)
        )


def _is_empty(ends: Sequence[float], zero: float) -> bool:
    """Tell whether all values from the smallest to the largest are the one that means no evidence, up to rounding."""
    return max(abs(end - zero) for end in ends) <= max(ROUNDING * abs(zero), TINY)


def _tell_empty(zero: float) -> str:
    value = f"{zero:.3g}"
    return f"This heatmap is empty: it is {value} everywhere, the value of a place that is no evidence."


@cache
def _version(package: str) -> str:
    return version(package)


def versions() -> dict[str, str]:
    """Return the versions of the libraries that a heatmap's numbers depend on."""
    return {package: _version(package) for package in ("torch", "numpy")}
