"""Networks of timm: ``timm:vit_base_patch16_224``, with a tag of its weights after a dot, or a local folder."""

from __future__ import annotations

from typing import Any

import torch

from core.class_names import number_repeated_names
from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.classifier import Classifier
from core.sources.hub import describe_failure, work_offline_if_unreachable
from core.sources.outputs import GreyTransforms, average, build_classifier, count_channels, mean_colour
from core.sources.spec import ModelSpec, import_extra, list_some, suggest_names

FILES = "config.json and model.safetensors"
HUB = "timm/"


def load(spec: ModelSpec, device: torch.device) -> Classifier:
    """Load a network of timm with its pretrained weights.

    ``timm:NAME`` or ``timm:NAME.TAG`` is one of timm's own, ``timm:OWNER/NAME`` one of another owner at huggingface.co,
    and ``timm:FOLDER`` a folder with config.json and model.safetensors, as `timm.models.save_for_hf` writes it.
    Transforms, mean colour and class names are those of its configuration.
    """
    spec.check_settings("names")
    names = spec.read_names()
    import_torchvision()  # timm imports it
    timm = import_extra("timm", "timm", spec)
    named, repository = _find_model(timm, spec)
    timm.models.set_pretrained_download_progress(True)
    try:
        with work_offline_if_unreachable():
            network = timm.create_model(named, pretrained=True)
    except Exception as error:  # of timm, of the hub's client and of its connection, which have no common type
        raise describe_failure(spec, error, repository, FILES) from error
    if not network.num_classes:
        raise _no_head(spec)
    config = timm.data.resolve_model_data_config(network)
    is_grey = count_channels(network) == 1
    if is_grey:
        config |= {name: average(config[name]) for name in ("mean", "std")}
        config["input_size"] = (1, *config["input_size"][1:])
    squash = {"crop_mode": "squash", "crop_pct": 1.0} if spec.whole else {}
    transforms = timm.data.create_transform(**config | squash, is_training=False)
    return build_classifier(
        network,
        GreyTransforms(transforms) if is_grey else transforms,
        names or _class_names(timm, network),
        name=spec.display,
        device=device,
        mean_colour=mean_colour(config["mean"]),
    )


def _find_model(timm: Any, spec: ModelSpec) -> tuple[str, str]:
    """Return what timm calls the model, and its repository at huggingface.co."""
    name = spec.name
    if spec.folder is not None:
        return f"local-dir:{spec.folder}", name
    if "/" in name:
        return f"hf-hub:{name}", name
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        known = sorted({one.partition(".")[0] for one in timm.list_models(pretrained=True)})
        hint = suggest_names(architecture, known, "List the names with timm.list_models(pretrained=True).")
        raise ForetellError(f"timm has no model {architecture!r}. {hint}")
    tags = [known.partition(".")[2] for known in timm.list_pretrained(architecture)]
    if tag and tag not in tags:
        raise ForetellError(f"timm has no weights {tag!r} of {architecture}. It offers: {list_some(tags, tag)}.")
    if not tags:
        raise ForetellError(
            f"timm has no weights for {architecture}. Save your own with timm.models.save_for_hf(network, FOLDER) and "
            "name that folder as timm:FOLDER."
        )
    config = timm.get_pretrained_cfg(name)
    if not config.num_classes:
        raise _no_head(spec)
    return name, config.hf_hub_id or f"{HUB}{name}"


def _no_head(spec: ModelSpec) -> ForetellError:
    return ForetellError(
        f"{spec.text} has no classification head: it gives features, and no classes. Train a linear layer on them and "
        "return both from FILE.py:build, or name weights that were trained on classes."
    )


def _class_names(timm: Any, network: Any) -> list[str] | None:
    """Return the class names of the weights' own configuration, else those of the ImageNet of that many classes."""
    config = network.pretrained_cfg
    labels = config.get("label_names")
    if labels:
        described = config.get("label_descriptions") or {}
        names = [described.get(label, label) if isinstance(described, dict) else label for label in labels]
        return number_repeated_names(names)
    subset = timm.data.infer_imagenet_subset(network)
    return number_repeated_names(timm.data.ImageNetInfo(subset).label_descriptions()) if subset else None
