"""Draws from the posterior and the prior of a mixed model, by the No-U-Turn Sampler of NumPyro.

The one file that needs NumPyro and JAX (`requirements-bayes.txt`), which are imported where they are first used. Random
effects are non-centred, u = diag(s) L z with z standard normal, because the posterior of centred ones narrows to a
funnel where a standard deviation is small (Betancourt & Girolami, 2015). s is normal and the standard deviation |s|,
which is half-normal: the sampler passes through 0 instead of slowing down at it, and neither the likelihood nor the LKJ
prior depends on the sign. NUTS: Hoffman & Gelman (2014),
https://jmlr.org/papers/v15/hoffman14a.html; NumPyro: Phan, Pradhan & Jankowiak (2019), arXiv:1912.11554.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from core.errors import ForetellError
from core.types import Progress, silent
from study.analysis.bayes.design import Design, find_scales
from study.analysis.bayes.priors import Priors
from study.analysis.models.records import Floats

MISSING = "A Bayesian fit needs NumPyro and JAX. Run: python -m pip install -r requirements-bayes.txt"
FEWEST_DRAWS = 100
"""Of each chain, below which R-hat and effective draws say little."""
CHAINS = 4
CAREFUL = 0.99
"""Target acceptance of a second attempt after divergences."""
CHUNK = 50
"""Iterations between two reports of progress, at which a fit can be stopped."""
Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class SamplerSettings:
    """How the posterior is drawn from.

    Attributes
    ----------
    draws
        Of each of the four chains, after `warmup` iterations that adapt steps and are left out.
    acceptance
        Mean acceptance that the step size is adapted to.
    seed
        The same seed on the same machine gives the same draws.

    Raises
    ------
    ForetellError
        Too few draws.
    """

    draws: int = 1000
    warmup: int = 500
    acceptance: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws < FEWEST_DRAWS:
            raise ForetellError(
                f"{self.draws:,} draws of each chain are too few to tell whether the chains agree: take at least "
                f"{FEWEST_DRAWS}, or leave the default of {SamplerSettings.draws:,}."
            )

    def describe(self) -> str:
        """Say how the posterior was drawn from."""
        return (
            f"NUTS (NumPyro), {CHAINS} chains of {self.draws:,} draws after {self.warmup:,} of warm-up, target "
            f"acceptance {self.acceptance:g}, random seed {self.seed}."
        )


@dataclass(frozen=True)
class ParameterDraws:
    """Draws of a model's parameters, in the units of its columns.

    Attributes
    ----------
    coefficients
        (c, d, p) of c chains.
    covariances
        (c, d, q, q) of each random term.
    energy
        (c, d) minus the log posterior density, up to a constant.
    divergences
        Iterations after warm-up in which the sampler lost its path.
    residual
        (c, d) residual standard deviation of a Gaussian model.
    """

    coefficients: Floats
    covariances: Sequence[Floats]
    energy: Floats
    divergences: int = 0
    residual: Floats | None = None

    def flatten(self) -> tuple[Floats, list[Floats]]:
        """Return (c * d, p) coefficients and (c * d, q, q) covariances, the chains one after another."""
        flat = [values.reshape(-1, *values.shape[2:]) for values in (self.coefficients, *self.covariances)]
        return flat[0], flat[1:]


def import_numpyro() -> Any:
    """Import NumPyro, in double precision on the processor.

    Raises
    ------
    ForetellError
        It is not installed.
    """
    try:
        import numpyro
    except ModuleNotFoundError:
        raise ForetellError(MISSING) from None
    numpyro.enable_x64()
    numpyro.set_platform("cpu")
    return numpyro


def sample(
    design: Design, priors: Priors, settings: SamplerSettings | None = None, progress: Progress = silent
) -> ParameterDraws:
    """Draw from the posterior, one chain after another.

    Raises
    ------
    ForetellError
        NumPyro is not installed.
    """
    settings = settings or SamplerSettings()
    import_numpyro()
    import jax
    from numpyro.infer import NUTS

    kernel = NUTS(_make_model(design, priors), target_accept_prob=settings.acceptance, dense_mass=_list_dense(design))
    data, run = _list_arrays(design), _make_run(kernel)
    start = jax.jit(lambda key, data: kernel.init(key, settings.warmup, None, (data,), {}))
    chunks = ceil((settings.warmup + settings.draws) / CHUNK)
    chains: list[dict[str, Floats]] = []
    for number, key in enumerate(jax.random.split(jax.random.PRNGKey(settings.seed), CHAINS)):
        said = f"Drawing from the posterior, chain {number + 1} of {CHAINS}"
        progress(number * chunks, CHAINS * chunks, said)
        state, parts = start(key, data), []
        for done in range(chunks):
            state, part = run(state, data)
            parts.append({name: np.asarray(values) for name, values in part.items()})
            progress(number * chunks + done + 1, CHAINS * chunks, said)
        rows = slice(settings.warmup, settings.warmup + settings.draws)
        chains.append({name: np.concatenate([part[name] for part in parts])[rows] for name in parts[0]})
    return _in_units(design, {name: np.stack([chain[name] for chain in chains]) for name in chains[0]})


def sample_prior(design: Design, priors: Priors, count: int, seed: int = 0) -> ParameterDraws:
    """Draw (1, count) parameters from the prior of the same model.

    Raises
    ------
    ForetellError
        NumPyro is not installed.
    """
    import_numpyro()
    import jax
    from numpyro.infer import Predictive

    model, data = _make_model(design, priors), _list_arrays(design)
    sites = _list_sites(design)
    made = Predictive(model, num_samples=count, return_sites=sites)(jax.random.PRNGKey(seed), data)
    drawn = {name: np.asarray(made[name])[None] for name in sites}
    return _in_units(design, drawn | {"energy": np.zeros((1, count)), "diverging": np.zeros((1, count))})


def _make_run(kernel: Any) -> Any:
    """Compile some iterations, which all chains share."""
    import jax

    def step(state: Any, data: Arrays) -> Any:
        state = kernel.sample(state, (data,), {})
        kept = kernel.postprocess_fn((data,), {})(state.z)
        kept.pop("z", None)
        return state, kept | {"energy": state.potential_energy, "diverging": state.diverging}

    return jax.jit(lambda state, data: jax.lax.scan(lambda s, _: step(s, data), state, None, length=CHUNK))


def _list_sites(design: Design) -> list[str]:
    """List the parameters that are kept; the single random effects are not."""
    kept = ["intercept"] if design.is_intercept.any() else []
    kept += ["effects"] if design.effects.shape[1] else []
    kept += ["signed_sds"] if design.blocks else []
    kept += ["residual_sd"] if design.model.family == "gaussian" else []
    return kept + [f"correlation{k}" for k, block in enumerate(design.blocks) if block.width > 1]


def _list_dense(design: Design) -> list[tuple[str, ...]] | bool:
    """List the parameters whose posterior correlations the sampler adapts to: those of the fixed effects."""
    fixed = tuple(name for name in _list_sites(design) if name in ("intercept", "effects"))
    return [fixed] if fixed else False


def _list_arrays(design: Design) -> dict[str, Any]:
    """List what the likelihood reads; random columns and a Gaussian response in the units of their priors."""
    arrays: dict[str, Any] = {
        "effects": design.effects,
        "offset": design.offset / design.unit,
        "successes": (design.successes - design.location) / design.unit,
        "responses": design.responses,
    }
    for k, block in enumerate(design.blocks):
        arrays |= {f"codes{k}": block.codes, f"values{k}": block.values / find_scales(block.values)}
    return arrays


def _make_model(design: Design, priors: Priors) -> Any:
    """Return the model as a function of the arrays; whatever has a random shape is fixed here."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    widths = [block.width for block in design.blocks]
    sizes = [block.size for block in design.blocks]
    has_intercept, p = bool(design.is_intercept.any()), design.effects.shape[1]
    is_linear, log_likelihood = design.model.family == "gaussian", _make_likelihood(design.model.link)

    def normal(name: str, sd: float, size: int) -> Any:
        return numpyro.sample(name, dist.Normal(0.0, sd).expand([size]).to_event(1))

    def model(data: Arrays) -> None:
        eta = jnp.asarray(data["offset"])
        if has_intercept:
            eta = eta + numpyro.sample("intercept", dist.Normal(0.0, priors.intercept_sd))
        if p:
            eta = eta + jnp.asarray(data["effects"]) @ normal("effects", priors.effect_sd, p)
        if widths:
            sds = normal("signed_sds", priors.random_sd, sum(widths))
            z, at, first = normal("z", 1.0, sum(sizes)), 0, 0
            for k, width in enumerate(widths):
                u = z[at : at + sizes[k]].reshape(-1, width)
                if width > 1:
                    u = u @ numpyro.sample(f"correlation{k}", dist.LKJCholesky(width, priors.correlation)).T
                u = u * sds[first : first + width]
                eta = eta + jnp.sum(jnp.asarray(data[f"values{k}"]) * u[data[f"codes{k}"]], axis=1)
                at, first = at + sizes[k], first + width
        if is_linear:
            residual = dist.Normal(eta, numpyro.sample("residual_sd", dist.HalfNormal(priors.residual_sd)))
            numpyro.factor("likelihood", jnp.sum(residual.log_prob(data["successes"])))
        else:
            numpyro.factor("likelihood", jnp.sum(log_likelihood(eta, data["successes"], data["responses"])))

    return model


def _make_likelihood(link: str | None) -> Any:
    """Return the binomial log-likelihood of each row, without its constant, as a function of eta and counts."""
    import jax

    if link == "probit":
        log_cdf = jax.scipy.special.log_ndtr
        return lambda eta, hits, counts: hits * log_cdf(eta) + (counts - hits) * log_cdf(-eta)
    return lambda eta, hits, counts: hits * eta - counts * jax.nn.softplus(eta)


def _in_units(design: Design, drawn: Mapping[str, Floats]) -> ParameterDraws:
    """Return draws in the units of the columns: effects per unit, the intercept where every predictor is 0."""
    shape, unit = drawn["energy"].shape, design.unit
    coefficients = np.zeros((*shape, len(design.terms)))
    if "effects" in drawn:
        coefficients[..., ~design.is_intercept] = unit * drawn["effects"] / design.scale[~design.is_intercept]
    if "intercept" in drawn:
        moved = coefficients @ design.centre
        coefficients[..., design.is_intercept] = (design.location + unit * drawn["intercept"] - moved)[..., None]
    covariances, first = [], 0
    for k, block in enumerate(design.blocks):
        sds = unit * drawn["signed_sds"][..., first : first + block.width] / find_scales(block.values)
        factor = drawn.get(f"correlation{k}", np.ones((*shape, 1, 1))) * sds[..., :, None]
        covariances.append(factor @ np.swapaxes(factor, -1, -2))
        first += block.width
    residual = unit * drawn["residual_sd"] if "residual_sd" in drawn else None
    return ParameterDraws(coefficients, covariances, drawn["energy"], int(np.sum(drawn["diverging"])), residual)
