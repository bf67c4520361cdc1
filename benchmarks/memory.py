"""Memory of a heatmap: whether its peak follows the budget and the heatmap stays the same.

``python -m benchmarks.memory``. One process for each budget makes occlusion and gradient heatmaps of eight images by
resnet50 (with random weights) and reports how much its peak rose above that with the network loaded.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from benchmarks.machine import report
from core import loading
from core.attribution import METHODS
from core.network.classifier import Classifier

BUDGETS_MIB = (32, 128, 512)
PARAMETERS: dict[str, dict[str, Any]] = {"occlusion": {"window": 32, "stride": 16}, "gradient": {}}
CHILD = "--one"
SQUARE = 16
"""Side of the squares, px, over which heatmaps are averaged before they are compared."""


def measure() -> dict[str, Any]:
    """Measure peaks by budget and method, and the differences of the heatmaps."""
    rows: dict[str, Any] = {}
    for budget in BUDGETS_MIB:
        environment = os.environ | {"FORETELL_MEMORY_MIB": str(budget)}
        command = [sys.executable, "-m", "benchmarks.memory", CHILD]
        made = {}
        for method in PARAMETERS:
            done = subprocess.run([*command, method], env=environment, capture_output=True, text=True, check=True)
            made[method] = json.loads(done.stdout)
        rows[f"{budget} MiB"] = made
    apart = {}
    for method in PARAMETERS:
        maps = [torch.tensor(row[method].pop("map")) for row in rows.values()]
        apart[method] = max(float((one - maps[0]).abs().max() / maps[0].abs().max()) for one in maps)
    return {"peak rise": rows, "largest difference of the heatmaps, relative": apart}


def _one(method: str) -> None:
    """Make eight heatmaps in a separate process, and measure the rise of the peak in MiB."""
    network = loading.import_torchvision().models.resnet50(weights=None)
    with torch.no_grad():
        for parameter in network.parameters():
            generator = torch.Generator().manual_seed(parameter.numel())
            parameter.normal_(0, parameter[0].numel() ** -0.5, generator=generator)
    classifier = Classifier(network, loading.imagenet_transforms, name="resnet50")
    images = torch.randn(8, *classifier.input_shape, generator=torch.Generator().manual_seed(1))
    METHODS["gradient"](classifier, images[:1], [0])  # warm up: allocate what stays
    classifier.logits(images[:1])
    before = _peak_mib()
    maps = METHODS[method](classifier, images, [0] * len(images), **PARAMETERS[method]).map
    rise = round(_peak_mib() - before)
    print(json.dumps({"rise_mib": rise, "map": F.avg_pool2d(maps, SQUARE).flatten().tolist()}))


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        _one(sys.argv[2])
    else:
        report(Path(__file__).stem, measure)
