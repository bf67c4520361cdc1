"""Networks of torchvision with random weights, the same in every run."""

from __future__ import annotations

import torch
from torch import nn

from core import loading
from core.classifier import Classifier
from core.device import default_device


def make_random_classifier(name: str) -> Classifier:
    """Make torchvision's network of that name with random weights, on the GPU where there is one."""
    models = loading.import_torchvision().models
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = models.get_model(name, weights=None)
        if name.startswith("vit"):  # torchvision begins with a last layer of zeros, under which nothing is seen
            nn.init.trunc_normal_(network.heads.head.weight, std=0.02)
    return Classifier(network, loading.imagenet_transforms, name=name, device=default_device())
