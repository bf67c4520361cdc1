"""Throughput of the masked-forward engine, relative to the network's own.

``python -m benchmarks.masked_forward``. Four things take turns on the same number of inputs: the network itself on a
ready batch; the fused program made from it, on a ready batch; the masked-forward engine (mask, fill, forward by
that program, softmax); and a whole Bayesian-teaching heatmap (with sampling and sums). Weights are random.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import in_turns, report
from core import loading
from core.attribution import METHODS
from core.classifier import Classifier
from core.device import chunk_size
from core.inference import make_faster_copy, make_fused_copy
from core.masked import iterate_masked_logits
from core.teaching.masks import MaskPrior
from study.network.sources import open_classifier

ROUNDS = 3
USUAL = ("resnet18", "resnet50", "mobilenet_v2", "densenet121", "efficientnet_b0", "convnext_tiny", "vit_b_16", "vgg16")


def measure() -> dict[str, Any]:
    """Measure inputs per second of each, and their ratios, for a small network and common ones."""
    found = {"scenes network, 96 px": _shares(open_classifier("scenes", Path.cwd()), masks=128)}
    for name in USUAL:
        network = loading.import_torchvision().models.get_model(name, weights=None)
        classifier = Classifier(network, loading.imagenet_transforms, name=name)
        found[f"torchvision {name}, 224 px"] = _shares(classifier, masks=32)
    return found


def _shares(classifier: Classifier, masks: int) -> dict[str, Any]:
    height, width = classifier.input_shape[1:]
    picture = torch.rand(1, *classifier.input_shape, generator=torch.Generator().manual_seed(1))
    batch = picture.expand(masks, -1, -1, -1).contiguous()
    prior, fill = MaskPrior(height, width), classifier.fill("mean")
    blocks = list(prior.blocks(masks, seed=1))
    chunk = chunk_size(picture[0])
    with classifier.exclusive() as module:
        program = make_fused_copy(make_faster_copy(module, fill[None]), fill[None])

    @torch.inference_mode()
    def bare(network: torch.nn.Module, layout: torch.memory_format) -> None:
        for part in batch.split(min(chunk, 64)):
            network(part.contiguous(memory_format=layout))

    def engine() -> None:
        for _ in iterate_masked_logits(classifier, picture, blocks, fill=fill):
            pass

    seconds = in_turns(
        {
            "network": lambda: bare(module, torch.contiguous_format),
            "program": lambda: bare(program, torch.channels_last),
            "masked engine": engine,
            "whole map": lambda: METHODS["bayesian_teaching"](classifier, picture, [0], samples=masks),
        },
        ROUNDS,
    )
    return {
        "inputs": masks,
        "inputs_per_second": {name: round(masks / value, 1) for name, value in seconds.items()},
        "masked engine / program": round(seconds["program"] / seconds["masked engine"], 3),
        "masked engine / network": round(seconds["network"] / seconds["masked engine"], 3),
        "whole map / program": round(seconds["program"] / seconds["whole map"], 3),
        "whole map / network": round(seconds["network"] / seconds["whole map"], 3),
    }


if __name__ == "__main__":
    report("masked_forward", measure)
