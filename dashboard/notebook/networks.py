"""Networks from Python: load, examine and compare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn

from core.attribution import METHODS
from core.errors import ForetellError
from core.loading import imagenet_transforms
from core.network.classifier import Classifier
from core.network.device import default_device
from core.network.examination import examine
from core.parameters import list_parameters, summary
from core.sources.outputs import build_classifier
from dashboard.notebook.images import Images, open_images
from study.network.sources import open_classifier

_sources: WeakKeyDictionary[Classifier, str] = WeakKeyDictionary()


def load(
    source: str | nn.Module | Classifier,
    *,
    transforms: Callable[[Image.Image], Tensor] | None = None,
    categories: Sequence[str] | None = None,
    device: str | None = None,
) -> Classifier:
    """Load a network: by its name as in a study file, or a `torch.nn.Module` of your own.

    Parameters
    ----------
    source
        ``"resnet50"``, ``"scenes"``, ``"mine.py:build"``, or a module from inputs (B, C, H, W) to logits (B, K).
    transforms
        For a module: PIL image -> input (C, H, W). By default resize 256, crop 224, normalise as for ImageNet.
    categories
        For a module: the K class names in the order of the logits; None numbers them.
    device
        Where it runs; None is an accelerator if there is one.

    Raises
    ------
    ForetellError
        Nothing of that name, no weights at hand, or a network that is no classifier.
    """
    if isinstance(source, Classifier):
        return source
    if isinstance(source, str):
        if transforms is not None or categories is not None:
            raise ForetellError(f"{source!r} brings its own transforms and categories: leave these arguments out.")
        loaded = open_classifier(source, Path.cwd(), device)
        _sources[loaded] = source
        return loaded
    place = torch.device(device) if device else default_device()
    named = {"name": type(source).__name__, "device": place}
    made = build_classifier(source, transforms or imagenet_transforms, categories, **named)
    made.warnings = examine(made)
    return made


def source_of(classifier: Classifier) -> str:
    """Return the name under which a study file finds this network.

    Raises
    ------
    ForetellError
        It was made from a module, which no file can name.
    """
    if classifier not in _sources:
        raise ForetellError(
            f"A study file cannot name {classifier.name}, a module of this program. Write a file with build() that "
            "returns it, and load that: load('mine.py:build')."
        )
    return _sources[classifier]


def inspect(model: str | nn.Module | Classifier) -> pd.Series:
    """Describe a network: its input, classes, device, weights, and the warnings that each heatmap of it carries."""
    classifier = load(model)
    with classifier.exclusive() as module:
        weights = sum(parameter.numel() for parameter in module.parameters())
    facts: dict[str, Any] = {
        "name": classifier.name,
        "input": " x ".join(map(str, classifier.input_shape)),
        "classes": len(classifier.categories),
        "first classes": ", ".join(classifier.names.short[:5]),
        "weights": weights,
        "device": str(classifier.device),
        "fingerprint": classifier.fingerprint[:16],
        "warnings": " ".join(classifier.warnings) or "none",
    }
    return pd.Series(facts, name=classifier.name)


def compare(models: Sequence[str | nn.Module | Classifier], images: Images) -> pd.DataFrame:
    """Compare the predictions of several networks: a row for each image, those on which they differ first.

    Returns
    -------
    pandas.DataFrame
        image, agree, and for each network its predicted class and the probability that it gives to it.
    """
    opened = open_images(images)
    table: dict[str, list[Any]] = {"image": [one.name for one in opened]}
    predictions = []
    for number, model in enumerate(models):
        classifier = load(model)
        inputs = torch.stack([classifier.preprocess(one.photograph) for one in opened])
        best = classifier.logits(inputs).softmax(1).max(1)
        name = classifier.name if classifier.name not in table else f"{classifier.name} ({number + 1})"
        predictions.append([classifier.names.short[k] for k in best.indices.tolist()])
        table |= {name: predictions[-1], f"P {name}": best.values.tolist()}
    agree = [len(set(row)) == 1 for row in zip(*predictions, strict=True)]
    return pd.DataFrame({"image": table.pop("image"), "agree": agree, **table}).sort_values("agree", kind="stable")


def methods() -> pd.DataFrame:
    """List the heatmap methods: name, what each does, and its parameters with their defaults."""
    rows = [
        (name, summary(METHODS[name]), ", ".join(f"{p.name}={p.default!r}" for p in list_parameters(METHODS[name])))
        for name in METHODS
    ]
    return pd.DataFrame(rows, columns=["method", "summary", "parameters"]).set_index("method")
