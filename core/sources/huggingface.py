"""Image classifiers of Hugging Face transformers: ``hf:google/vit-base-patch16-224``, or a local folder."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image
from torch import Tensor

from core.class_names import number_repeated_names
from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.classifier import IMAGENET_MEAN_COLOUR, Classifier
from core.sources.hub import describe_failure, work_offline_if_unreachable
from core.sources.outputs import GreyTransforms, average, build_classifier, count_channels, mean_colour
from core.sources.spec import ModelSpec, import_extra

FILES = "config.json, preprocessor_config.json and model.safetensors"
HEAD = "ForImageClassification"
"""What the architecture of every network of transformers with a classification head has in its name."""
MULTI_LABEL = "multi_label_classification"


def load(spec: ModelSpec, device: torch.device) -> Classifier:
    """Load an image classifier with its own image processor and class names.

    ``hf:OWNER/NAME`` is fetched from huggingface.co, ``hf:OWNER/NAME@REVISION`` at that branch, tag or commit, and
    ``hf:FOLDER`` a folder as ``save_pretrained`` writes it. Code in the repository is never executed.
    """
    spec.check_settings("names")
    names = spec.read_names()
    spec.refuse_whole()
    import_torchvision()  # transformers imports it
    transformers = import_extra("transformers", "transformers", spec)
    name, _, revision = spec.name.partition("@")
    where = str(spec.folder or name)
    settings = {"trust_remote_code": False} | ({"revision": revision} if revision and not spec.folder else {})
    try:
        with work_offline_if_unreachable():
            config = transformers.AutoConfig.from_pretrained(where, **settings)
            _check_head(spec, config)
            network, report = transformers.AutoModelForImageClassification.from_pretrained(
                where, config=config, dtype=torch.float32, output_loading_info=True, **settings
            )
            processor = transformers.AutoImageProcessor.from_pretrained(where, **settings)
    except ForetellError:
        raise
    except Exception as error:  # of transformers, of the hub's client and of its connection, which have no common type
        raise describe_failure(spec, error, name, FILES) from error
    _check_weights(spec, report)
    is_grey = (getattr(config, "num_channels", None) or count_channels(network)) == 1
    if is_grey:
        _make_grey(processor)
    mean = getattr(processor, "image_mean", None)
    transforms = ProcessorTransforms(processor)
    classifier = build_classifier(
        network,
        GreyTransforms(transforms) if is_grey else transforms,
        names or _class_names(config),
        name=spec.display,
        device=device,
        mean_colour=mean_colour(mean) if mean else IMAGENET_MEAN_COLOUR,
    )
    if config.problem_type == MULTI_LABEL:
        classifier.warnings = (
            f"{classifier.name} was trained to give several labels to one image. Foretell compares its classes by a "
            "softmax, so its probabilities are not those of the labels.",
        )
    return classifier


class ProcessorTransforms:
    """Transforms by an image processor of transformers.

    Parameters
    ----------
    processor
        Returns ``pixel_values`` (1, C, H, W) of one PIL image.
    """

    def __init__(self, processor: Any) -> None:
        self.processor = processor

    def __call__(self, image: Image.Image) -> Tensor:
        """Return the input (C, H, W) of a PIL image."""
        pixels: Tensor = self.processor(images=image, return_tensors="pt")["pixel_values"][0]
        return pixels


def _make_grey(processor: Any) -> None:
    """Make an image processor leave images grey, with the mean and the spread of grey."""
    processor.do_convert_rgb = False
    for name in ("image_mean", "image_std"):
        if getattr(processor, name, None) is not None:
            setattr(processor, name, list(average(getattr(processor, name))))


def _check_head(spec: ModelSpec, config: Any) -> None:
    architectures = config.architectures or []
    if architectures and not any(HEAD in architecture for architecture in architectures):
        instead = (
            " For CLIP with a file of class names use clip:NAME?names=FILE." if "clip" in config.model_type else ""
        )
        raise ForetellError(
            f"{spec.text} is a {architectures[0]} without a classification head, so it predicts no classes. Name "
            f"weights that were trained for image classification.{instead}"
        )


def _check_weights(spec: ModelSpec, report: Any) -> None:
    """Refuse weights that lack some of the network's: transformers fills them with random numbers."""
    absent = sorted({*report["missing_keys"], *(key[0] for key in report["mismatched_keys"])})
    if absent:
        raise ForetellError(
            f"{spec.text} has no weights for {absent[0]}, which would be random. Name weights that were trained for "
            "image classification."
        )


def _class_names(config: Any) -> list[str] | None:
    names = [str(config.id2label[k]) for k in range(config.num_labels)]
    return None if names == [f"LABEL_{k}" for k in range(len(names))] else number_repeated_names(names)
