"""x-features: a few features of a layer that explain a class's output, by a sparse reconstruction autoencoder (SRAE).

Qi, Khorram & Li 2018, Embedding Deep Networks into Visual Explanations (arXiv:1709.05360). For class j and the
embedding Z (M, S) of M images, with n x-features E_θ(Z) (M, n) and x̂_k dimension k as decoded from them,

    min over θ, θ~, v of  (1/M) Σ_i (vᵀE_θ(z_i) − ŷ_ij)² + β (1/S) Σ_k log(1 + q Q_k)
                          + η (1/(n(n−1))) Σ_{l≠l'} cos²(E_l, E_l') + λ (‖θ‖² + ‖θ~‖² + ‖v‖²),

    Q_k = (1/M) Σ_i (x̂_ik − z_ik)².

Here every dimension of Z is divided by its standard deviation and ŷ is standardised, so that Q_k = 1 and a first term
of 1 are those of the mean; the decoder is affine and vᵀE has an intercept. The encoder has no bias, so that
E(z) = ∇E(z) z: gradient times activation, summed over channels and places, is the x-feature itself.

With a linear encoder everything but the third term and the weights' sizes depends on the span of the x-features alone,
so that among uncorrelated features any rotation is as good. Features that are not negative, the default, are not free
to rotate (Plumbley 2003, doi:10.1109/TNN.2003.810616).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import torch
from torch import Tensor

from core.errors import ForetellError
from core.types import Progress, silent

MOST = 20
"""x-features at most: they are meant to be few."""
TINY = 1e-12
FITTING = "fitting x-features"


@dataclass(frozen=True)
class XFeatureSettings:
    """What a sparse reconstruction autoencoder is fitted with. The source prints no values: these are ours.

    Attributes
    ----------
    features
        n, 1 to 20.
    hidden
        Units of the encoder's hidden layer; 0 for none.
    rectified
        Whether x-features are rectified, max(0, ·).
    supporting
        Whether v ≥ 0, so that the output is high because of x-features that an image has, not ones that it lacks. The
        source leaves v free, and with v ≥ 0 one x-feature tends to take everything.
    beta, q, eta
        β and q of the sparse reconstruction, and η of the pull-away term.
    decay
        λ, the same for encoder, decoder and v.
    steps, rate, starts
        Steps of Adam over all images, its first learning rate (it falls to 0 along a cosine), and random starts, of
        which the one with the least objective is kept: the objective has many local minima.
    """

    features: int = 3
    hidden: int = 0
    rectified: bool = True
    supporting: bool = False
    beta: float = 0.3
    q: float = 10.0
    eta: float = 0.1
    decay: float = 1e-4
    steps: int = 500
    rate: float = 0.02
    starts: int = 8


@dataclass(frozen=True)
class XFeatures:
    """A fitted sparse reconstruction autoencoder.

    Attributes
    ----------
    layers
        Weights of the encoder: one (n, S), or two with a hidden layer (H, S) and (n, H).
    rectified
        Whether the x-features are.
    weights, intercept
        v (n,) and the intercept, in logits.
    decoder, centre
        Of the decoder (S, n) and (S,), in units of Z.
    spread
        Standard deviations (S,) of Z, 0 where a dimension does not vary; these are left out of the reconstruction.
    objective
        The objective at the end.
    rival
        The best fit of the other half of the random starts: what another random seed could have found; None for a
        single start.
    """

    layers: tuple[Tensor, ...]
    rectified: bool
    weights: Tensor
    intercept: float
    decoder: Tensor
    centre: Tensor
    spread: Tensor
    objective: float
    rival: XFeatures | None = field(default=None, repr=False)

    def encode(self, embedding: Tensor) -> Tensor:
        """Return the x-features (M, n) of an embedding (M, S)."""
        return _encode(embedding.double(), self.layers, self.rectified)

    def predict(self, embedding: Tensor) -> Tensor:
        """Return the class's output (M,) as the x-features give it."""
        return self.encode(embedding) @ self.weights + self.intercept

    def compute_errors(self, embedding: Tensor) -> Tensor:
        """Compute Q_k (S',) of the S' dimensions that vary, in units of their variance in the fitted images."""
        varies = self.spread > 0
        left = self.encode(embedding) @ self.decoder.T + self.centre - embedding.double()
        return (left[:, varies] / self.spread[varies]).square().mean(0)

    def draw_maps(self, maps: Tensor) -> Tensor:
        """Compute what each place adds to the class's output through each x-feature: (M, n, h, w).

        ``maps`` are the layer's outputs (M, S, h, w), whose means over places are the embedding. Gradient times
        activation: the sum over places is v_l E_l.
        """
        maps = maps.double()
        with torch.enable_grad():
            embedding = maps.mean((2, 3)).requires_grad_()
            features = self.encode(embedding)
            gradients = [
                torch.autograd.grad(features[:, one].sum(), embedding, retain_graph=True)[0]
                for one in range(features.shape[1])
            ]
        scaled = torch.stack(gradients, 1) * self.weights[:, None] / maps.shape[2:].numel()
        return torch.einsum("mns,mshw->mnhw", scaled, maps)


def fit_x_features(
    embedding: Tensor,
    outputs: Tensor,
    settings: XFeatureSettings | None = None,
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> XFeatures:
    """Fit x-features to an embedding (M, S) and the class's output (M,), by Adam in float64 on the CPU.

    The same generator gives the same x-features.

    Raises
    ------
    ForetellError
        A setting out of its range, fewer than 2 images, an output or an embedding that is the same for all images, or
        values that are not finite.
    """
    chosen = settings or XFeatureSettings()
    check_settings(chosen)
    z, y = embedding.detach().double().cpu(), outputs.detach().double().cpu()
    _check_values(z, y)
    spread = z.std(0, correction=0)
    spread = torch.where(spread > 1e-6 * (z.abs().amax(0) + TINY), spread, 0.0)
    if not bool((spread > 0).any()):
        raise ForetellError("The layer's outputs are the same for all images: choose another layer, or other images.")
    kept = spread > 0
    centre, height = y.mean(), y.std(correction=0)
    draws = generator or torch.Generator().manual_seed(0)
    fits: list[_Fit] = []
    for start in range(1, chosen.starts + 1):
        fit = _Fit(z[:, kept] / spread[kept], (y - centre) / height, chosen, draws)
        if start % 2 == 0:
            fit.start_at_images(draws)
        fit.run()
        progress(start, chosen.starts, FITTING)
        fits.append(fit)
    halves = [half for half in (fits[: (chosen.starts + 1) // 2], fits[(chosen.starts + 1) // 2 :]) if half]
    best, *rivals = sorted((min(half, key=lambda fit: fit.objective) for half in halves), key=lambda fit: fit.objective)
    chosen_fit, *others = (
        _describe_fit(one, z.mean(0), spread, float(centre), float(height)) for one in (best, *rivals)
    )
    return replace(chosen_fit, rival=others[0]) if others else chosen_fit


def check_settings(settings: XFeatureSettings) -> None:
    """Raise the error for a setting out of its range."""
    if not 1 <= settings.features <= MOST:
        raise ForetellError(f"features={settings.features}: choose 1 to {MOST} x-features.")
    least = {"hidden": 0, "beta": 0, "q": 0, "eta": 0, "decay": 0, "steps": 1, "starts": 1}
    for name, low in least.items():
        value = getattr(settings, name)
        if not (math.isfinite(value) and value >= low):
            raise ForetellError(f"{name}={value}: give a number of at least {low}.")


def _check_values(z: Tensor, y: Tensor) -> None:
    if len(z) < 2:
        raise ForetellError(f"x-features are fitted to 2 or more images, and here there is {len(z)}: give more images.")
    if not bool(z.isfinite().all() and y.isfinite().all()):
        raise ForetellError("The layer or the class's output has values that are not finite: choose another layer.")
    if float(y.std(correction=0)) <= 1e-9 * (float(y.abs().max()) + TINY):
        raise ForetellError("The class's output is the same for all images: give other images, or another class.")


class _Fit:
    """One run from a random start, in standard units: encoder, decoder, v and their intercepts."""

    def __init__(self, x: Tensor, y: Tensor, settings: XFeatureSettings, draws: torch.Generator) -> None:
        self.x, self.y, self.settings, self.objective = x, y, settings, math.inf
        self.size = float(x.square().sum(1).mean().sqrt())
        self.inputs = x / self.size  # of length 1, so that a step of the encoder is not larger for more channels
        sizes = [x.shape[1], *([settings.hidden] if settings.hidden else []), settings.features]
        self.layers = [_draw(b, a, draws) for a, b in pairwise(sizes)]
        if settings.rectified or settings.hidden:  # of one sign, so that nothing rectified starts at 0 for all images
            self.layers = [one.abs() for one in self.layers]
        self.decoder, self.centre = _draw(x.shape[1], settings.features, draws), x.mean(0)
        self.v = _draw(1, settings.features, draws)[0]
        self.intercept = torch.zeros((), dtype=torch.double)

    def start_at_images(self, draws: torch.Generator) -> None:
        """Start each x-feature at what an image has more of than half the mean."""
        if len(self.layers) == 1 and self.settings.rectified and self.settings.features <= len(self.x):
            rows = self.inputs[torch.randperm(len(self.x), generator=draws)[: self.settings.features]]
            mean = self.inputs.mean(0)
            unit = rows / rows.norm(dim=1, keepdim=True).clamp(min=TINY)
            self.layers = [unit - mean / (2 * mean.norm() + TINY)]

    def run(self) -> None:
        """Minimise the objective, from x-features of mean square 1."""
        rms = _encode(self.inputs, self.layers, self.settings.rectified).square().mean(0).sqrt()
        self.layers[-1] = self.layers[-1] / rms.clamp(min=TINY)[:, None]
        weighed = [*self.layers, self.decoder, self.v]
        free = [one.requires_grad_() for one in (*weighed, self.centre, self.intercept)]
        optimiser = torch.optim.Adam(free, lr=self.settings.rate)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.settings.steps)
        with torch.enable_grad():
            for _ in range(self.settings.steps):
                optimiser.zero_grad()
                loss = self.compute_objective()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                falling.step()
        with torch.no_grad():
            self.objective = float(self.compute_objective())

    def weigh(self) -> Tensor:
        """Return v (n,)."""
        return self.v.abs() if self.settings.supporting else self.v

    def compute_objective(self) -> Tensor:
        chosen = self.settings
        features = _encode(self.inputs, self.layers, chosen.rectified)
        faithful = (features @ self.weigh() + self.intercept - self.y).square().mean()
        errors = (features @ self.decoder.T + self.centre - self.x).square().mean(0)
        sizes = sum((one.square().sum() for one in (*self.layers, self.decoder, self.v)), torch.zeros(()))
        return (
            faithful
            + chosen.beta * compute_sparsity(errors, chosen.q)
            + chosen.eta * compute_pull_away(features)
            + chosen.decay * sizes
        )


def _draw(rows: int, columns: int, draws: torch.Generator) -> Tensor:
    drawn = torch.zeros(rows, columns, dtype=torch.double).normal_(generator=draws)
    return drawn / math.sqrt(columns)


def _encode(x: Tensor, layers: Sequence[Tensor], rectified: bool) -> Tensor:
    for weights in layers[:-1]:
        x = (x @ weights.T).relu()
    features = x @ layers[-1].T
    return features.relu() if rectified else features


def _describe_fit(fit: _Fit, mean: Tensor, spread: Tensor, centre: float, height: float) -> XFeatures:
    """Return a fit in units of the layer and of the logit, with weight 0 for dimensions that do not vary."""
    kept, n = spread > 0, fit.settings.features
    first = torch.zeros(len(fit.layers[0]), len(spread), dtype=torch.double)
    first[:, kept] = fit.layers[0].detach() / (spread[kept] * fit.size)
    decoder, middle = torch.zeros(len(spread), n, dtype=torch.double), mean.clone()
    decoder[kept] = fit.decoder.detach() * spread[kept, None]
    middle[kept] = fit.centre.detach() * spread[kept]
    return XFeatures(
        layers=(first, *(one.detach() for one in fit.layers[1:])),
        rectified=fit.settings.rectified,
        weights=fit.weigh().detach() * height,
        intercept=float(fit.intercept.detach()) * height + centre,
        decoder=decoder,
        centre=middle,
        spread=spread,
        objective=fit.objective,
    )


def compute_pull_away(features: Tensor) -> Tensor:
    """Compute the mean squared cosine of pairs of x-features (M, n) over the images; 0 for a single one."""
    n = features.shape[1]
    if n < 2:
        return features.new_zeros(())
    unit = features / (features.square().sum(0, keepdim=True) + TINY).sqrt()
    cosines = (unit.T @ unit).square()
    return (cosines.sum() - cosines.diagonal().sum()) / (n * (n - 1))


def compute_sparsity(errors: Tensor, q: float) -> Tensor:
    """Compute (1/S) Σ_k log(1 + q Q_k) of reconstruction errors Q (S,): large errors cost little more."""
    return torch.log1p(q * errors).mean()
