"""The built-in network and scenes it answers: a real network whose world is known."""

from __future__ import annotations

import torch
from torch import Tensor

from core.network.classifier import Classifier
from data.scenes import classifier
from data.scenes.splits import picture


def scene_net(device: str = "cpu") -> Classifier:
    """The built-in classifier, as a user's own file is loaded."""
    return Classifier(
        classifier.build(),
        classifier.transforms,
        classifier.CATEGORIES,
        name="scenes",
        mean_colour=classifier.MEAN_COLOUR,
        device=device,
    )


def answered(network: Classifier, count: int) -> tuple[Tensor, list[int]]:
    """The first standard scenes (count, 3, 96, 96) and what the network says of each."""
    inputs = torch.stack([network.preprocess(picture("standard", 0, index).image) for index in range(count)])
    return inputs, network.logits(inputs).argmax(1).tolist()
