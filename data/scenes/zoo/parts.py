"""``scenes:parts``: the built-in network with filters that each detect one part (Zhang, Wu and Zhu 2018)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, SceneNet, transforms
from data.scenes.classifier import build as build_scenes
from data.scenes.zoo.filter_loss import Assignment, KeepPlace, compute_filter_losses, make_templates
from data.scenes.zoo.filter_measures import IMAGES, compare, compute_maps, draw_truth, measure_filters, summarise
from data.scenes.zoo.fitting import fit
from data.scenes.zoo.material import Material
from data.scenes.zoo.store import halve, restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "measure", "train", "transforms"]

TITLE = "Filters that each detect one part"
DIFFERENCE = (
    "It is the built-in network, trained further with the filter loss, and of each filter of its last convolution only "
    "what is near the maximum goes on. Its filters respond to the same part of the same category more often, and more "
    "steadily."
)
SEED = 12
EPOCHS = 6
RATE = 2e-3
SIDE = 6
"""Of the outputs of the last convolution."""
TAU, WEIGHT = 5.0, 5.0
"""τ of the templates, and the weight of the mean loss of the filters."""

CONTROL = Path(__file__).with_name("parts.control.json")
"""Purity and instability of the filters of the same network, trained further without the filter loss."""


class PartNet(SceneNet):
    """The built-in network; what is far from the maximum of a filter of the last convolution is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.features.append(KeepPlace(SIDE))


def build() -> nn.Module:
    """Return the trained network."""
    return restore(PartNet(), "parts")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train the built-in network further, with the filter loss; the control only where its file is missing."""
    if not CONTROL.is_file():
        control = fine_tune(material, 0.0)
        halve(control)
        figures = measure_filters(compute_maps(control, _first(material)), draw_truth())
        without = {name: figures[name].round(4).tolist() for name in ("purity", "instability")}
        CONTROL.write_text(json.dumps(without) + "\n", encoding="utf-8")
    settings = {"images": len(material.training()), "epochs": EPOCHS, "seed": SEED, "tau": TAU, "weight": WEIGHT}
    return fine_tune(material, WEIGHT), settings


def fine_tune(material: Material, weight: float) -> nn.Module:
    """Train the built-in network further, with this weight of the filter loss."""
    images, network, templates = material.training(), PartNet(), make_templates(SIDE, TAU)
    network.load_state_dict(build_scenes().state_dict())
    assignment = Assignment(len(CATEGORIES))

    def loss(x: Tensor, index: Tensor) -> Tensor:
        labels = images.labels[index]
        maps = network.features[:-1](x)
        logits = network.head(network.flatten(network.pool(network.features[-1](maps))))
        whole = cross_entropy(logits.float(), labels)
        if not weight:
            return whole
        with torch.autocast("cpu", enabled=False):
            own = assignment.find_own(maps.float(), labels)
            return whole + weight * compute_filter_losses(maps.float(), templates, own).mean()

    generator = torch.Generator().manual_seed(SEED)
    return fit(network, images, epochs=EPOCHS, generator=generator, loss=loss, rate=RATE)


def measure(network: nn.Module, material: Material) -> dict[str, Any]:
    """Measure part purity and location instability of the filters, compared with three others.

    Filter by filter with the built-in network, with the same network trained further without the filter loss, and with
    what a filter would have whose maximum were in the middle of all its images.
    """
    truth, pixels = draw_truth(), _first(material)
    maps = compute_maps(network, pixels)
    own, built_in = measure_filters(maps, truth), measure_filters(compute_maps(build_scenes(), pixels), truth)
    middle = torch.zeros_like(maps)
    middle[..., SIDE // 2, SIDE // 2] = maps.amax((2, 3))
    others = {"scenes": built_in, "middle": measure_filters(middle, truth)}
    control = json.loads(CONTROL.read_text(encoding="utf-8"))
    others["without_the_loss"] = {name: np.array(values) for name, values in control.items()}
    return {
        "filters": {
            measure: {"scenes:parts": summarise(own[measure])}
            | {name: summarise(one[measure]) for name, one in others.items()}
            | {f"less_{name}": compare(own[measure], one[measure]) for name, one in others.items()}
            for measure in ("purity", "instability")
        },
        "images": IMAGES,
        "parts_found": [truth.names[part] for part in own["part"]],
    }


def _first(material: Material) -> Tensor:
    return material.held_out("standard").pixels[:IMAGES]
