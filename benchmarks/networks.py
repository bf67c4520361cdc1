"""Networks of torchvision and timm with random weights, the same in every run."""

from __future__ import annotations

import torch
from torch import nn

from core import loading
from core.network.classifier import Classifier
from core.network.device import default_device


def make_random_classifier(name: str) -> Classifier:
    """Make the network ``NAME`` of torchvision or ``timm:NAME`` with random weights, on the GPU where there is one."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = _make_network(name)
    return Classifier(network, loading.imagenet_transforms, name=name, device=default_device())


def _make_network(name: str) -> nn.Module:
    if name.startswith("timm:"):
        loading.import_torchvision()  # timm imports it too
        import timm

        made: nn.Module = timm.create_model(name.removeprefix("timm:"), pretrained=False)
        return made
    network: nn.Module = loading.import_torchvision().models.get_model(name, weights=None)
    if name.startswith("vit"):  # torchvision begins with a last layer of zeros, under which nothing is seen
        nn.init.trunc_normal_(network.heads.head.weight, std=0.02)
    return network
