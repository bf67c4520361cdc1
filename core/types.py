"""Results of the engine: frozen records, with shapes and units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor  # at run time the reports of progress must not wait for torch

Progress = Callable[[int, int, str], None]
"""``progress(done, total, what)``; raise from it to cancel."""


def silent(done: int, total: int, what: str) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Certificate:
    """The certificate of one heatmap, with facts about its reliability. ``None``: does not apply to the method.

    Attributes
    ----------
    method, target
        Registered name, or ``FILE.py:function``, ``heatmaps:FOLDER`` or ``own``; index of the explained class.
    fingerprint
        SHA-256 of the classifier's weights and structure.
    probability
        The classifier's softmax probability of ``target`` for the unmasked image.
    completeness
        sum of the heatmap minus (f(x) - f(baseline)), divided by abs(f(x) - f(baseline)): 0 is exact.
    conservation
        sum of the heatmap divided by f(x): 1 where all relevance has been shared out and nothing absorbed.
    standard_error
        Largest Monte Carlo standard error over the pixels of the heatmap, in the heatmap's unit.
    effective_samples
        Kish's effective sample size of the weights, (sum q)^2 / sum q^2.
    samples, seed
        Number of random draws and the seed they came from.
    sampling
        How a sampler that adapts went: which it was, what it cost, how well independent runs agree.
    parameters
        The method's parameters as used (baseline, layer, steps, fill, ...).
    warnings
        Sentences a user must read before believing the heatmap.
    versions
        Version of each library that made it.
    origin
        Where a heatmap that Foretell did not make comes from: file or folder and its SHA-256, or package; else empty.
    """

    method: str
    target: int
    fingerprint: str
    probability: float
    completeness: float | None = None
    conservation: float | None = None
    standard_error: float | None = None
    effective_samples: float | None = None
    samples: int | None = None
    seed: int | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Explanation:
    """Heatmaps of a batch.

    Attributes
    ----------
    map
        (B, H, W) float32 on the CPU; signed where the method is signed; never clipped or rescaled.
    zero
        The value that means "no evidence either way" (0 for signed methods, the prior mean of the mask for
        Bayesian-teaching heatmaps), one for all or one for each image (B,): rendering anchors its colours there.
    certificates
        One per image.
    error
        (B, H, W) float32 Monte Carlo standard error of `map`, or None for deterministic methods.
    """

    map: Tensor
    zero: float | Tensor
    certificates: tuple[Certificate, ...]
    error: Tensor | None = None

    @property
    def zeros(self) -> Tensor:
        """`zero` of each image, (B,) float32."""
        import torch

        return torch.as_tensor(self.zero, dtype=torch.float32).expand(len(self.map))

    @property
    def evidence(self) -> Tensor:
        """The heatmap's distance from its zero, (B, H, W): above 0 for the class, below against it."""
        return self.map - self.zeros[:, None, None]


@dataclass(frozen=True)
class TeachingSet:
    """Examples chosen to teach a learner what the classifier says.

    Attributes
    ----------
    indices
        Indices into the pool: first those of the target category, then those of the alternative.
    p_learner, p_prior
        The learner's probability of the target category after and before seeing the examples.
    gain
        log-odds(p_learner) - log-odds(p_prior).
    policy, scored
        How it was chosen, and out of how many scored sets.
    rank
        Share of the random sets that do not teach better: 1 is the best of them.
    curve
        (sets scored, best probability so far) pairs.
    others, higher, equal
        How many random sets besides this one were scored, and after how many of them the probability is higher and is
        the same.
    """

    indices: tuple[int, ...]
    p_learner: float
    p_prior: float
    gain: float
    policy: str
    scored: int
    rank: float
    curve: tuple[tuple[int, float], ...]
    others: int = 0
    higher: int = 0
    equal: int = 0
