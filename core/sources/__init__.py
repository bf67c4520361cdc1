"""Networks by name: of torchvision, timm, Hugging Face and CLIP, exported programs, and a user's own Python files.

`SOURCES` names every source: adding one is one file in ``core/sources`` and one line.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from core.files import FileLimits
from core.network.classifier import Classifier
from core.network.examination import examine
from core.network.precision import lower_precision
from core.registry import Registry
from core.sources.spec import parse_spec

SOURCES = Registry(
    "model source",
    {
        "torchvision": "core.sources.torchvision_models:load",
        "timm": "core.sources.timm_models:load",
        "hf": "core.sources.huggingface:load",
        "clip": "core.sources.clip:load",
        "exported": "core.sources.exported:load",
        "file": "core.sources.python_file:load",
    },
)


def load(
    spec: str,
    *,
    device: torch.device | str = "cpu",
    base: Path | None = None,
    name: str | None = None,
    whole: bool = False,
    limits: FileLimits | None = None,
) -> Classifier:
    """Load the classifier that ``spec`` names.

    Parameters
    ----------
    spec
        ``SOURCE:NAME``, with ``?setting=value&setting=value`` for the source's settings and ``precision``
        (docs/how-to/add-a-model.md). Without a source, ``FILE.py:build`` is a Python file, ``FILE.pt2`` or ``FILE.pt``
        an exported program, and any other name one of torchvision's. Python files and exported programs are executed:
        load only files you trust.
    device
        Where the network runs.
    base
        The folder from which relative paths start; by default the working folder.
    name
        Its name for display; by default that of the file or of the model.
    whole
        Resize the whole image to the network's input, whatever its aspect, where its own transforms would crop.
    limits
        The folders outside which ``spec`` may name no file; by default, it may name any.

    Raises
    ------
    ForetellError
        An unknown source or name, a package that is not installed, no weights at hand, no classification head, an
        output that is not logits (`core.network.examination`), or ``whole`` for a network that brings its own
        transforms.
    """
    parsed = parse_spec(spec, SOURCES, base or Path(), title=name or "", whole=whole, limits=limits)
    precision = parsed.settings.get("precision")
    kept = {name: values for name, values in parsed.settings.items() if name != "precision"}
    classifier: Classifier = SOURCES[parsed.source](replace(parsed, settings=kept), torch.device(device))
    classifier.warnings = (*classifier.warnings, *examine(classifier))
    if precision:
        lower_precision(classifier, precision)
    return classifier
