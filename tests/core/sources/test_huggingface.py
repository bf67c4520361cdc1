from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
import torch

from core.errors import ForetellError
from core.sources import load
from tests.core.sources.conftest import LABELS, save_huggingface


@pytest.mark.parametrize("kind", ["ViT", "ResNet", "Swin"])
def test_logits_and_inputs_are_those_of_transformers(kind, tmp_path, picture):
    """A ModelOutput that is not unwrapped, other weights or transforms. Oracle: transformers; the mean by hand."""
    network = save_huggingface(tmp_path, kind)
    classifier = load(f"hf:{tmp_path}")
    processor = importlib.import_module("transformers").AutoImageProcessor.from_pretrained(tmp_path)
    expected = processor(images=picture, return_tensors="pt")["pixel_values"]
    inputs = classifier.preprocess(picture)[None]
    assert torch.equal(inputs, expected)
    np.testing.assert_allclose(classifier.fill("mean").mean((1, 2)), 0, atol=0.01)
    with torch.no_grad():
        torch.testing.assert_close(classifier.logits(inputs), network(expected).logits, rtol=1e-4, atol=1e-5)
    assert classifier.categories == LABELS
    assert classifier.mean_colour == (51, 102, 153)
    assert classifier.head.shape[0] == len(LABELS)
    box = classifier.geometry(picture.size).box
    np.testing.assert_allclose(box, (0, 0, *picture.size), atol=1)


def test_a_network_without_a_head_is_refused_before_its_weights_are_read(tmp_path):
    """A random head, which transformers adds in silence; and weights of gigabytes fetched for it."""
    save_huggingface(tmp_path, head="Model")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ForetellError, match="is a ViTModel without a classification head, so it predicts no classes"):
        load(f"hf:{tmp_path}")


def test_weights_without_the_head_are_refused(tmp_path):
    """A random head where the configuration promises one that the file of weights lacks."""
    save_huggingface(tmp_path, head="Model")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["ViTForImageClassification"]}))
    with pytest.raises(ForetellError, match=r"has no weights for classifier.bias, which would be random"):
        load(f"hf:{tmp_path}")


def test_one_class_several_labels_and_unnamed_labels(tmp_path):
    """One logit taken for a class of its own; a sigmoid taken for a softmax in silence; LABEL_0 as a class name."""
    one = {"id2label": {0: "cat"}, "label2id": {"cat": 0}}
    save_huggingface(tmp_path / "one", **one)
    with pytest.raises(ForetellError, match=r"returns one number for an image. Foretell compares classes"):
        load(f"hf:{tmp_path / 'one'}")
    save_huggingface(tmp_path / "several", problem_type="multi_label_classification")
    (warning,) = load(f"hf:{tmp_path / 'several'}").warnings
    assert "several labels" in warning
    save_huggingface(tmp_path / "unnamed", id2label={k: f"LABEL_{k}" for k in range(3)})
    assert load(f"hf:{tmp_path / 'unnamed'}").categories == ("class 0", "class 1", "class 2")
    save_huggingface(tmp_path / "repeated", id2label=dict(enumerate(("crane", "dog", "crane"))))
    assert load(f"hf:{tmp_path / 'repeated'}").categories == ("crane (0)", "dog", "crane (2)")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "google/vit-base-patch16-224@main",
            r"huggingface.co cannot be reached. Connect once, or put config.json, preprocessor_config.json and "
            r"model.safetensors of https://huggingface.co/google/vit-base-patch16-224 in a folder and name it as",
        ),
        ("nothing?prompt=a {}", r"hf:nothing does not take the setting 'prompt'. It takes: names."),
    ],
)
def test_bad_names_say_what_to_do(name, text):
    with pytest.raises(ForetellError, match=text) as caught:
        load(f"hf:{name}")
    assert "\n" not in str(caught.value)


def test_what_huggingface_refuses_is_one_sentence(tmp_path):
    """A repository that does not exist named as a missing connection; a traceback for a folder of something else."""
    errors = importlib.import_module("huggingface_hub.errors")
    spec = importlib.import_module("core.sources.spec")
    hub = importlib.import_module("core.sources.hub")
    parsed = spec.ModelSpec("hf", "nobody/nothing", {}, tmp_path)
    httpx = importlib.import_module("httpx")
    response = httpx.Response(401, request=httpx.Request("GET", "https://huggingface.co"))
    cause = errors.RepositoryNotFoundError("401", response=response)
    error = OSError("nobody/nothing is not a local folder")
    error.__cause__ = cause
    said = str(hub.describe_failure(parsed, error, "nobody/nothing", "config.json"))
    assert said.startswith("hf:nobody/nothing: huggingface.co has no model 'nobody/nothing' that is open to everyone.")
    with pytest.raises(ForetellError, match=r"does not hold a network of hf \(ValueError: Unrecognized model"):
        load(f"hf:{tmp_path}")
