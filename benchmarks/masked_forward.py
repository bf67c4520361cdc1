"""Throughput of the masked-forward engine, relative to the network's own.

``python -m benchmarks.masked_forward``. Four things take turns on the same number of inputs: the network itself on a
ready batch; the fused program made from it, on a ready batch; the masked-forward engine (mask, fill, forward by
that program, softmax); and a whole Bayesian-teaching heatmap (with sampling and sums). Weights are random.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.machine import in_turns, on_accelerator, report
from benchmarks.networks import make_random_classifier
from core.attribution import METHODS
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size, exact_arithmetic
from core.network.inference import make_faster_copy, make_fused_copy
from core.network.masked import iterate_masked_logits
from core.network.precision import PRECISIONS, lower_precision
from core.teaching.masks import MaskPrior
from study.network.sources import open_classifier

ROUNDS = 3
USUAL = ("resnet18", "resnet50", "mobilenet_v2", "densenet121", "efficientnet_b0", "convnext_tiny", "vgg16")
TRANSFORMERS = ("vit_b_16", "swin_t", "timm:vit_base_patch16_224")


def measure() -> dict[str, Any]:
    """Measure inputs per second of each, and their ratios, for a small network and common ones."""
    shares = {"scenes network, 96 px": _shares(open_classifier("scenes", Path.cwd()), masks=128)}
    for name in USUAL + TRANSFORMERS:
        shares[f"{'' if ':' in name else 'torchvision '}{name}, 224 px"] = _shares(
            make_random_classifier(name), masks=256 if on_accelerator() else 32
        )
    return shares


def _shares(classifier: Classifier, masks: int) -> dict[str, Any]:
    height, width = classifier.input_shape[1:]
    image = torch.rand(1, *classifier.input_shape, generator=torch.Generator().manual_seed(1))
    batch = image.expand(masks, -1, -1, -1).contiguous().to(classifier.device)
    prior, fill = MaskPrior(height, width, device=classifier.device), classifier.fill("mean")
    probe = fill[None].to(classifier.device)
    blocks = list(prior.blocks(masks, seed=1))
    chunk = chunk_size(image[0], classifier.device)
    with classifier.exclusive() as module:
        program = make_fused_copy(make_faster_copy(module, probe), probe)

    @torch.inference_mode()
    def bare(network: torch.nn.Module, layout: torch.memory_format) -> None:
        for part in batch.split(min(chunk, 64)):
            network(part.contiguous(memory_format=layout))

    def engine() -> None:
        for _ in iterate_masked_logits(classifier, image, blocks, fill=fill):
            pass

    seconds = in_turns(
        {
            "network": lambda: bare(module, torch.contiguous_format),
            "program": lambda: bare(program, torch.channels_last),
            "masked engine": engine,
            "whole heatmap": lambda: METHODS["bayesian_teaching"](classifier, image, [0], samples=masks),
        },
        ROUNDS,
    )
    figures = {
        "inputs": masks,
        "inputs_per_second": {name: round(masks / value, 1) for name, value in seconds.items()},
        "masked engine / program": round(seconds["program"] / seconds["masked engine"], 3),
        "masked engine / network": round(seconds["network"] / seconds["masked engine"], 3),
        "whole heatmap / program": round(seconds["program"] / seconds["whole heatmap"], 3),
        "whole heatmap / network": round(seconds["network"] / seconds["whole heatmap"], 3),
    }
    return figures | (_with_fewer_digits(classifier, image, blocks, seconds["network"]) if on_accelerator() else {})


def _with_fewer_digits(
    classifier: Classifier, image: Tensor, blocks: list[Tensor], network: float
) -> dict[str, dict[str, float | str]]:
    """Measure the engine at each precision, and the largest change of a logit as a share of the logits' range."""
    changes: dict[str, dict[str, float | str]] = {}
    fill = classifier.fill("mean")

    def run(one: Classifier) -> Tensor:
        return torch.cat([logits[0] for _, logits in iterate_masked_logits(one, image, blocks, fill=fill)])

    with exact_arithmetic(classifier.device):
        expected = run(classifier)
    for name in PRECISIONS:
        with classifier.exclusive() as module:
            short = Classifier(module, classifier.preprocess, name=name, device=classifier.device)
        try:
            lower_precision(short, [name])
        except ForetellError as error:
            changes[name] = {"refused": str(error)}
            continue
        change = (run(short) - expected).abs().max() / (expected.amax(1) - expected.amin(1)).max()
        seconds = in_turns({name: partial(run, short)}, ROUNDS)[name]
        changes[name] = {
            "masked engine / network": round(network / seconds, 3),
            "largest change of a logit": round(float(change), 5),
        }
    return changes


if __name__ == "__main__":
    report("masked_forward", measure)
