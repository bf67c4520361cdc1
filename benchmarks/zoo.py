"""How well each heatmap method finds a known difference between two networks of the scenes.

For each difference a score of a heatmap says what it should show of it, such as the share of the evidence on the
context. Both networks are explained on the same images, each for its predicted class; a method finds the difference to
the degree to which the score tells the two networks' heatmaps apart: the area under the ROC curve (0.5 is chance).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from benchmarks.machine import arguments, hand_over
from benchmarks.rows import Row, Rows
from core.attribution import METHODS
from core.errors import ForetellError
from core.faithfulness.pointing import relevance_mass
from core.network.classifier import Classifier
from data.scenes.generator import Scene
from data.scenes.splits import picture
from data.scenes.zoo.effects import HIGH, LOW
from data.scenes.zoo.material import HELD_OUT_SEED
from study.network.sources import open_classifier
from study.workspace.workspace import home

CHEAP = (
    "gradient input_x_gradient guided_backpropagation deconvnet smoothgrad integrated_gradients deeplift lrp_0 "
    "lrp_epsilon lrp_gamma lrp_alpha_beta lrp_z_plus lrp_composite taylor_decomposition excitation_backpropagation "
    "contrastive_excitation cam grad_cam grad_cam_plus_plus layer_cam guided_grad_cam score_cam erasure occlusion"
)
"""Methods that take less than about a quarter of a second for an image."""
DEAR = "bayesian_teaching rise lime kernel_shap shapley_sampling sobol hsic"
"""Methods that take up to about a second and a half, on fewer scenes; docs/zoo.md names those that are left out."""
BUILT_IN = "scenes"
RESAMPLES = 1000
Floats = NDArray[np.float64]
Score = Callable[[Tensor, Scene], float]


def context_share(evidence: Tensor, scene: Scene) -> float:
    """Compute the share of positive evidence (H, W) outside the object; NaN without any."""
    return 1 - float(relevance_mass(evidence[None], torch.from_numpy(scene.mask)[None])[0])


def fine_share(evidence: Tensor, scene: Scene) -> float:  # noqa: ARG001 - one signature for all scores
    """Compute the share of a heatmap's variance above 16 cycles per image; NaN for a constant one."""
    return _band_share(evidence, lambda radius: radius > HIGH)


def coarse_share(evidence: Tensor, scene: Scene) -> float:  # noqa: ARG001 - one signature for all scores
    """Compute the share of a heatmap's variance below 4 cycles per image; NaN for a constant one."""
    return _band_share(evidence, lambda radius: radius < LOW)


def object_share(evidence: Tensor, scene: Scene) -> float:
    """Compute the share of positive evidence (H, W) on the object; NaN without any."""
    return 1 - context_share(evidence, scene)


@dataclass(frozen=True)
class Difference:
    """What is known of a network, and the score that is larger for the built-in network's heatmaps.

    Attributes
    ----------
    network
        The network that is compared with the built-in one.
    score
        A name of `SCORES`.
    known
        What is known, in words. The cards have it in numbers: `INTERVENTIONS` says under which name.
    """

    network: str
    score: str
    known: str


SCORES: dict[str, Score] = {
    "evidence on the context": context_share,
    "details above 16 cycles": fine_share,
    "areas below 4 cycles": coarse_share,
    "evidence on the object": object_share,
}
INTERVENTIONS = {
    "evidence on the context": "do(context)",
    "details above 16 cycles": "do(high frequencies)",
    "areas below 4 cycles": "do(low frequencies)",
    "evidence on the object": "do(object)",
}
"""What each score should show: the intervention whose effect is larger for the built-in network."""
DIFFERENCES = (
    Difference("scenes:blind", "evidence on the context", "does not use the context"),
    Difference("scenes:aware", "evidence on the context", "knows the context and does not use it"),
    Difference("scenes:federated", "evidence on the context", "uses the context less"),
    Difference("scenes:parts", "evidence on the context", "uses the context somewhat less"),
    Difference("scenes:vit", "evidence on the object", "uses the object less, the context more"),
    Difference("scenes:coarse", "details above 16 cycles", "sees no details"),
    Difference("scenes:fine", "areas below 4 cycles", "sees no areas"),
    Difference("scenes:memorised", "evidence on the object", "learnt nothing of the object"),
    Difference("scenes:student", "evidence on the context", "control: imitates the built-in network"),
)


def main(words: Sequence[str] | None = None) -> None:
    """Read the arguments, compute missing scores, print the table."""
    parser = arguments("zoo")
    parser.add_argument("--images", type=int, default=24, help="scenes, standard and shifted in turn")
    parser.add_argument("--dear", type=int, default=12, help="scenes for methods that take long")
    parser.add_argument("--methods", default=f"{CHEAP} {DEAR}".replace(" ", ","), help="comma-separated")
    parser.add_argument("--rows", type=Path, help="file of the scores; in the workspace by default")
    given = parser.parse_args(words)
    path = given.rows or home() / "benchmarks" / "zoo.jsonl"
    hand_over("zoo", given, lambda: measure(given.methods.split(","), given.images, given.dear, path))


def measure(methods: Sequence[str], images: int, dear: int, path: Path) -> dict[str, Any]:
    """Measure how well each method finds each difference, JSON-ready."""
    scenes = stage(images)
    networks = {
        name: open_classifier(name, Path.cwd(), "cpu") for name in (BUILT_IN, *(d.network for d in DIFFERENCES))
    }
    table: dict[str, dict[str, Any]] = {one.network: {} for one in DIFFERENCES}
    left_out: dict[str, str] = {}
    for method in methods:
        used = scenes[: dear if method in DEAR.split() else images]
        scores = {name: _score(network, method, used, path, left_out) for name, network in networks.items()}
        for one in DIFFERENCES:
            first, second = (scores[name].get(one.score) for name in (BUILT_IN, one.network))
            if first is not None and second is not None:
                table[one.network][method] = separate(first, second)
        print(f"{method} {left_out.get(method, 'done')}", file=sys.stderr, flush=True)
    return {
        "images": {"cheap": images, "dear": dear},
        "dear": [name for name in DEAR.split() if name in methods],
        "differences": [
            {
                "network": one.network,
                "known": one.known,
                "score": one.score,
                "intervention": INTERVENTIONS[one.score],
                "methods": table[one.network],
            }
            for one in DIFFERENCES
        ],
        "left_out": left_out,
        "not_measured": [name for name in METHODS if name not in methods],
    }


def stage(count: int) -> list[Scene]:
    """Draw held-out scenes with a visible object, standard and shifted in turn."""
    drawn = (picture(split, HELD_OUT_SEED, i) for i in range(count) for split in ("standard", "adversarial"))  # type: ignore[arg-type]
    scenes: list[Scene] = []
    for scene in drawn:
        if scene.mask.any() and len(scenes) < count:
            scenes.append(scene)
        if len(scenes) == count:
            break
    return scenes


def separate(first: Floats, second: Floats) -> dict[str, Any]:
    """Compute the area under the ROC curve of two networks' scores, with a bootstrap interval over images.

    It is the share of pairs of heatmaps, one of each network, in which the first has the larger score; ties count half.
    Images are resampled for both networks together, and those without a score are left out.
    """
    kept = np.isfinite(first) & np.isfinite(second)
    first, second = first[kept], second[kept]
    if not len(first):
        return {"auc": None, "interval_95": [None, None], "images": 0}
    rows = np.random.default_rng(0).integers(len(first), size=(RESAMPLES, len(first)))
    drawn = [_area(first[row], second[row]) for row in rows]
    low, high = np.quantile(drawn, (0.025, 0.975))
    interval = [round(float(low), 3), round(float(high), 3)]
    return {"auc": round(_area(first, second), 3), "interval_95": interval, "images": len(first)}


def _area(first: Floats, second: Floats) -> float:
    """Mann and Whitney's U over the number of pairs."""
    ranks = stats.rankdata(np.concatenate([first, second]))
    count = len(first)
    return float((ranks[:count].sum() - count * (count + 1) / 2) / (count * len(second)))


def _score(
    network: Classifier, method: str, scenes: Sequence[Scene], path: Path, left_out: dict[str, str]
) -> dict[str, Floats]:
    """Return the scores of a method's heatmaps of all scenes, by name; none where the method does not apply."""
    rows = Rows(path, {"network": network.fingerprint})
    scores: list[Row] = []
    for scene in scenes:
        key = (method, str(scene.seed), scene.context)
        try:
            scores.append(rows.get(*key) or rows.add(_row(network, method, scene), *key))
        except ForetellError as error:
            left_out[f"{method} of {network.name}"] = str(error)
            return {}
    return {name: np.array([row[name] for row in scores], dtype=float) for name in SCORES}


def _row(network: Classifier, method: str, scene: Scene) -> Row:
    x = network.preprocess(scene.image)
    target = int(network.logits(x[None]).argmax())
    explanation = METHODS[method](network, x[None], [target], generator=torch.Generator().manual_seed(0))
    return {name: score(explanation.evidence[0], scene) for name, score in SCORES.items()}


def _band_share(evidence: Tensor, band: Callable[[Tensor], Tensor]) -> float:
    height, width = evidence.shape
    power = torch.fft.fft2(evidence.double()).abs() ** 2
    power[0, 0] = 0
    down, across = (torch.fft.fftfreq(n, 1 / n, dtype=torch.float64) for n in (height, width))
    inside = band(torch.hypot(down[:, None], across[None]))
    total = float(power.sum())
    return float(power[inside].sum()) / total if total > 0 else float("nan")


if __name__ == "__main__":
    main()
