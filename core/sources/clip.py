"""Zero-shot classifiers of CLIP networks: ``clip:ViT-B-32?names=FILE``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from core.class_names import ClassNames
from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.classifier import Classifier
from core.sources.hub import describe_failure, work_offline_if_unreachable
from core.sources.outputs import build_classifier, mean_colour
from core.sources.spec import ModelSpec, import_extra, list_some, suggest_names
from core.text import read_lines

PROMPT = "a photo of a {}."
"""The prompt that Radford et al. (2021, section 3.1.4) use by default."""
FILES = "open_clip_config.json and open_clip_model.safetensors (or open_clip_pytorch_model.bin)"
AT_ONCE = 256
"""Number of texts that are encoded in one batch."""
DEFAULT_TAG = "openai"


class ZeroShot(nn.Module):
    """A CLIP network's image encoder and, as its last linear layer, the embeddings of the class names.

    Parameters
    ----------
    visual
        Images (B, C, H, W) to embeddings (B, M), not yet normalised.
    head
        (K, M): the normalised embeddings of the K classes times the temperature's inverse; its bias is the network's.
    """

    def __init__(self, visual: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.visual = visual
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scaled cosines (B, K) of images and class names (Radford et al. 2021, figure 3)."""
        features = self.visual(inputs)
        features = features[0] if isinstance(features, (tuple, list)) else features
        logits: Tensor = self.head(functional.normalize(features, dim=-1))
        return logits


def load(spec: ModelSpec, device: torch.device) -> Classifier:
    """Load a CLIP network as a classifier of the classes that a text file names.

    ``clip:NAME`` and ``clip:NAME:TAG`` are open_clip's, ``clip:OWNER/NAME`` is fetched from huggingface.co, and
    ``clip:FOLDER`` a folder with open_clip_config.json and its weights. Settings: ``names``, a file of one class name
    per line; ``prompt``, a text with {} for the name, repeatable; ``prompts``, a file of one prompt per line. The
    embeddings of several prompts are averaged.
    """
    spec.check_settings("names", "prompt", "prompts")
    names = spec.read_names()
    if names is None:
        raise ForetellError(
            f"{spec.text} needs class names to choose from: write one per line in a text file and name the model as "
            f"{spec.text}?names=FILE."
        )
    twice = ClassNames(names).find_repeated()
    if twice is not None:
        raise ForetellError(f"The class names of {spec.text} have {twice!r} twice. Give each class a name of its own.")
    prompts = _read_prompts(spec)
    import_torchvision()  # open_clip imports it
    open_clip = import_extra("open_clip", "open_clip_torch", spec)
    named, settings, repository = _find_model(open_clip, spec)
    try:
        with work_offline_if_unreachable(), _root_log_kept():
            network = open_clip.create_model(named, require_pretrained=True, **settings).eval()
            tokenizer = open_clip.get_tokenizer(named)
    except Exception as error:  # of open_clip, of the hub's client and of its connection, which have no common type
        raise describe_failure(spec, error, repository, FILES) from error
    head = build_head(network.to(device), tokenizer, names, prompts)
    config = network.visual.preprocess_cfg | ({"resize_mode": "squash"} if spec.whole else {})
    preprocessing = open_clip.transform.PreprocessCfg(**config)
    return build_classifier(
        ZeroShot(network.visual, head),
        open_clip.transform.image_transform_v2(preprocessing, is_train=False),
        names,
        name=spec.display,
        device=device,
        mean_colour=mean_colour(preprocessing.mean),
    )


@torch.no_grad()
def build_head(network: Any, tokenizer: Any, names: Sequence[str], prompts: Sequence[str]) -> nn.Linear:
    """Return the class names as a linear layer over normalised image embeddings.

    The embedding of a class is the normalised mean of the normalised embeddings of its prompts (Radford et al. 2021,
    section 3.1.4); the scale of the logits is multiplied into the weights, and a network with a bias of its logits
    (SigLIP) gives it to the layer.
    """
    device = next(network.parameters()).device
    texts = [prompt.replace("{}", name) for name in names for prompt in prompts]
    encoded = [
        network.encode_text(tokenizer(texts[start : start + AT_ONCE]).to(device), normalize=True)
        for start in range(0, len(texts), AT_ONCE)
    ]
    classes = torch.cat(encoded).reshape(len(names), len(prompts), -1).mean(1)
    bias = getattr(network, "logit_bias", None)
    head = nn.Linear(classes.shape[1], len(names), bias=bias is not None, device=device)
    head.weight.copy_(functional.normalize(classes, dim=-1) * network.logit_scale.exp())
    if bias is not None:
        head.bias.fill_(float(bias))
    return head


@contextmanager
def _root_log_kept() -> Iterator[None]:
    """Keep open_clip, which logs at the root, from adding a handler there that prints every later message."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _read_prompts(spec: ModelSpec) -> list[str]:
    prompts = list(spec.settings.get("prompt", ()))
    for file in spec.settings.get("prompts", ()):
        prompts += read_lines(spec.find_path(file), "one prompt per line")
    for prompt in prompts:
        if "{}" not in prompt:
            raise ForetellError(f"The prompt {prompt!r} has no {{}} for the class name. Example: {PROMPT}")
    return prompts or [PROMPT]


def _find_model(open_clip: Any, spec: ModelSpec) -> tuple[str, dict[str, Any], str]:
    """Return what open_clip calls the model, the settings that load its weights, and its repository."""
    name, _, tag = spec.name.partition(":")
    if spec.folder is not None:
        return f"local-dir:{spec.folder}", {}, name
    if "/" in name:
        return f"hf-hub:{name}", {}, name
    known = open_clip.list_models()
    if name not in known:
        hint = suggest_names(name, known, "List the names with open_clip.list_models().")
        raise ForetellError(f"open_clip has no model {name!r}. {hint}")
    tags = open_clip.list_pretrained_tags_by_model(name)
    if not tags:
        raise ForetellError(f"open_clip has no weights for {name}. Name one of open_clip.list_pretrained().")
    if tag and tag not in tags:
        raise ForetellError(f"open_clip has no weights {tag!r} of {name}. It offers: {list_some(tags, tag)}.")
    chosen = tag or (DEFAULT_TAG if DEFAULT_TAG in tags else tags[0])
    weights = open_clip.get_pretrained_cfg(name, chosen)
    # Weights trained with the approximate GELU need it, whatever the configuration of that name says.
    settings = {"pretrained": chosen, "force_quick_gelu": bool(weights.get("quick_gelu"))}
    return name, settings, "/".join(str(weights.get("hf_hub") or "").split("/")[:2])
