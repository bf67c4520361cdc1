"""Seconds of each heatmap method next to the library that users would take instead, on the same batch and network.

``python foretell.py bench attribution``, or ``python -m benchmarks.attribution [--methods a,b] [--networks resnet50]``.
captum, pytorch-grad-cam and zennit run with the same settings (steps, samples, windows, cells), once as they come and,
where they have a batch setting, once with Foretell's batch; a row says which. ``faster`` is the peer's time divided by
ours: above 1 Foretell is faster. With ``--threads 1`` seconds are the processor's. Methods without a peer are set
against the network's own bare forward passes of as many images. Weights are random. ``disagreement`` is the
largest difference of the heatmaps divided by the largest value, where both are deterministic and equal. Rows are
saved one by one in ``--rows FILE``, so that an interrupted run resumes.

``--realistic`` measures methods of few and of many passes at 1 and at 8 images with the settings of a study, next to
the network's own gradient in both orders of memory and as a CUDA graph: at most five minutes on a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from benchmarks import peers
from benchmarks.bare import list_bare_gradients
from benchmarks.machine import in_turns
from benchmarks.networks import make_random_classifier
from benchmarks.rows import Rows, run_by_method
from core.attribution import METHODS
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size, default_device, exact_arithmetic
from core.types import Explanation

NETWORKS = ("resnet50", "mobilenet_v2", "vit_b_16", "swin_t")
SETTINGS: dict[str, dict[str, Any]] = {
    "integrated_gradients": {"steps": 16, "quadrature": "gauss_legendre", "baseline": "zero"},
    "smoothgrad": {"samples": 8},
    "vargrad": {"samples": 8},
    "expected_gradients": {"samples": 8},
    "occlusion": {"window": 64, "stride": 32},
    "lime": {"grid": 5, "samples": 100},
    "kernel_shap": {"grid": 5, "samples": 100},
    "shapley_sampling": {"grid": 3, "pairs": 4},
    "shapley_exact": {"grid": 3},
    "bayesian_teaching": {"samples": 64},
    "rise": {"samples": 64},
    "sobol": {"designs": 2, "grid": 5},
    "hsic": {"samples": 64},
    "lrp_composite": {"first": "flat"},
    "deep_shap": {"samples": 4},
    "deeplift": {"baseline": "zero"},
    "meaningful_perturbation": {"iterations": 10},
    "extremal_perturbation": {"iterations": 10},
    "anchors": {"samples": 400, "share": 0.5},
    "prediction_difference": {"window": 56, "stride": 56, "samples": 4},
}
LAYERS = {
    "resnet50": "layer1",
    "mobilenet_v2": "features.13",
    "vit_b_16": "encoder.layers.encoder_layer_11.ln_1",
    "swin_t": "features.3",
}
"""Score-CAM needs a pass for each feature map: here 256, 96, 768 and 192."""
MANY_PASSES = frozenset(
    {
        "bayesian_teaching",
        "rise",
        "sobol",
        "hsic",
        "occlusion",
        "lime",
        "kernel_shap",
        "shapley_sampling",
        "shapley_exact",
        "score_cam",
    }
    | {"anchors", "prediction_difference", "meaningful_perturbation", "extremal_perturbation", "expected_gradients"}
    | {"smoothgrad", "vargrad", "integrated_gradients", "deep_shap", "erasure", "taylor_decomposition"}
)
"""Networks and methods measured on 2 images; all others on 8."""
ROUNDS = {8: 3, 2: 1}

REALISTIC_NETWORKS = ("resnet50", "vit_b_16")
REALISTIC: dict[str, dict[str, Any]] = {
    "gradient": {},
    "input_x_gradient": {},
    "integrated_gradients": {"steps": 64, "quadrature": "gauss_legendre", "baseline": "zero"},
    "expected_gradients": {"samples": 32},
    "smoothgrad": {"samples": 32},
    "vargrad": {"samples": 32},
    "grad_cam": {},
    "occlusion": {"window": 64, "stride": 32},
    "bayesian_teaching": {"samples": 1000},
    "rise": {"samples": 1000},
}
IMAGES = (1, 8)
MASKED = frozenset({"bayesian_teaching", "rise"})
"""Methods of which one round is long enough."""


def measure(networks: list[str], methods: list[str], rows: Rows) -> dict[str, Any]:
    """Measure rows by network and method."""
    table: dict[str, Any] = {name: {} for name in networks}
    for name, method in tqdm([(name, method) for name in networks for method in methods], unit="method"):
        table[name][method] = rows.get(name, method) or rows.add(
            _row(make_random_classifier(name), method), name, method
        )
    return table


def measure_realistic(networks: list[str], methods: list[str], rows: Rows) -> dict[str, Any]:
    """Measure rows by network, and by method and number of images."""
    table: dict[str, Any] = {name: {} for name in networks}
    cases = [(method, count) for method in methods if method in REALISTIC for count in IMAGES]
    for name, (method, count) in tqdm([(name, case) for name in networks for case in cases], unit="method"):
        key = f"{method}, {count} image{'s' if count > 1 else ''}"
        table[name][key] = rows.get(name, key) or rows.add(
            _compare_method(make_random_classifier(name), method, count, REALISTIC[method], limits=True), name, key
        )
    return table


def _row(classifier: Classifier, method: str) -> dict[str, Any]:
    settings = SETTINGS.get(method, {}) | ({"layer": LAYERS[classifier.name]} if method == "score_cam" else {})
    return _compare_method(classifier, method, 2 if method in MANY_PASSES else 8, settings)


def _compare_method(
    classifier: Classifier, method: str, batch: int, settings: dict[str, Any], *, limits: bool = False
) -> dict[str, Any]:
    """Measure a method and its peers; with ``limits`` also what the network's own gradient takes, however it is run."""
    images = torch.randn(batch, *classifier.input_shape, generator=torch.Generator().manual_seed(1))
    targets = list(range(batch))
    ours = partial(_explain, classifier, method, images, targets, settings)
    try:
        ours()
    except ForetellError as error:
        return {"refused": str(error)}
    with exact_arithmetic(classifier.device), classifier.exclusive() as module:
        others: dict[str, Callable[[], Tensor | None]] = {}
        for label, build in peers.PEERS.get(method, {}).items():
            others[label] = build(module, images.to(classifier.device), targets, settings)
        bare = list_bare_gradients(module, images.to(classifier.device)) if limits and method == "gradient" else {}
        rounds = 1 if method in MASKED else ROUNDS[8 if limits else batch]
        return _compare(module, images, ours, others, bare, rounds)


def _explain(
    classifier: Classifier, method: str, images: Tensor, targets: list[int], settings: dict[str, Any]
) -> Explanation:
    generator = torch.Generator().manual_seed(0)
    explanation: Explanation = METHODS[method](classifier, images, targets, generator=generator, **settings)
    return explanation


def _compare(
    module: nn.Module,
    images: Tensor,
    ours: Callable[[], Explanation],
    others: dict[str, Callable[[], Tensor | None]],
    bare: dict[str, Callable[[], object]],
    rounds: int,
) -> dict[str, Any]:
    row: dict[str, Any] = {"images": len(images)}
    works: dict[str, Callable[[], object]] = {"foretell": ours, "bare forward": partial(_forward, module, images)}
    for label, run in (others | bare).items():
        try:
            heatmap = run()
        except Exception as error:  # a peer that fails on this network is a result too
            row[label] = f"stops: {type(error).__name__}: {str(error).splitlines()[0][:160]}"
            continue
        works[label] = run
        if isinstance(heatmap, Tensor):
            mine = ours().map
            row["disagreement"] = float((mine - heatmap).abs().max() / mine.abs().max())
    seconds = in_turns(works, rounds)
    row |= {"seconds": {name: round(value, 4) for name, value in seconds.items()}}
    row["faster"] = {name: round(seconds[name] / seconds["foretell"], 2) for name in others if name in seconds}
    row["bare forward passes"] = round(seconds["foretell"] / seconds["bare forward"], 1)
    return row


@torch.inference_mode()
def _forward(module: nn.Module, images: Tensor) -> None:
    for part in images.split(chunk_size(images[0], default_device())):
        module(part.to(next(module.parameters()).device))


if __name__ == "__main__":
    if "--realistic" in sys.argv:
        sys.argv.remove("--realistic")
        run_by_method("attribution", REALISTIC_NETWORKS, measure_realistic)
    else:
        run_by_method("attribution", NETWORKS, measure)
