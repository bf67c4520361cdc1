from __future__ import annotations

import importlib

import pytest
import torch

from core.errors import ForetellError
from core.sources import load
from tests.core.sources.conftest import LABELS, save_timm


@pytest.mark.parametrize("name", ["test_vit", "test_resnet", "test_convnext"])
def test_logits_and_inputs_are_those_of_timm(name, tmp_path, picture):
    """Another network, weights or transforms than timm itself gives. Oracle: timm, on an image that is not square."""
    timm = importlib.import_module("timm")
    network = save_timm(tmp_path, name, label_names=list(LABELS))
    classifier = load(f"timm:{tmp_path}")
    config = timm.data.resolve_model_data_config(network)
    expected = timm.data.create_transform(**config, is_training=False)(picture)
    inputs = classifier.preprocess(picture)
    assert torch.equal(inputs, expected)
    with torch.no_grad():
        torch.testing.assert_close(classifier.logits(inputs[None]), network(expected[None]), rtol=1e-4, atol=1e-5)
    assert classifier.categories == LABELS
    assert classifier.mean_colour == tuple(round(255 * value) for value in config["mean"])
    assert classifier.head.shape == (4, network.num_features + 1)
    assert classifier.geometry(picture.size) is not None


@pytest.mark.parametrize(
    ("classes", "names"),
    [(1000, {0: "tench, Tinca tinca", 134: "crane (134)", 517: "crane (517)"}), (21843, {2: "heterotroph"}), (7, {})],
)
def test_class_names_follow_from_the_number_of_classes(tmp_path, classes, names):
    """Numbers where ImageNet's names are known, or names of another list; two cranes of one name.

    First names: timm's own word list.
    """
    save_timm(tmp_path, "test_vit", classes)
    categories = load(f"timm:{tmp_path}").categories
    assert len(categories) == classes
    assert {k: categories[k] for k in names} == names
    assert names or categories[6] == "class 6"


def test_described_labels_and_a_file_of_names(tmp_path, names):
    """WordNet ids as class names, although the configuration describes them; or a file of names that is ignored."""
    described = {f"n{k}": name for k, name in enumerate(LABELS)}
    folder = tmp_path / "network"
    save_timm(folder, "test_resnet", label_names=list(described), label_descriptions=described)
    assert load(f"timm:{folder}").categories == LABELS
    names.write_text("one\ntwo\nthree\nfour\n")
    assert load(f"timm:network?names={names}", base=tmp_path).categories == ("one", "two", "three", "four")


def test_the_whole_image_is_squashed_to_the_input(tmp_path, picture):
    """A crop where resize = "whole" promises the whole image. By hand: the measured box is the image itself."""
    save_timm(tmp_path, "test_resnet")
    x, y, right, bottom = load(f"timm:{tmp_path}", whole=True).geometry(picture.size).box
    assert (round(x), round(y), round(right), round(bottom)) == (0, 0, *picture.size)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vit_bas_patch16_224", r"timm has no model 'vit_bas_patch16_224'. Did you mean vit_base_patch16_224 or"),
        ("qqq", r"timm has no model 'qqq'. List the names with timm.list_models\(pretrained=True\)."),
        ("test_vit.r160_in2k", r"timm has no weights 'r160_in2k' of test_vit. It offers: r160_in1k."),
        ("resnet18d_nothing", r"timm has no model"),
        ("vit_base_patch14_dinov2.lvd142m", r"has no classification head: it gives features, and no classes. Train"),
        (
            "test_vit",
            r"not on this machine and huggingface.co cannot be reached. Connect once, or put config.json and "
            r"model.safetensors of https://huggingface.co/timm/test_vit.r160_in1k in a folder and name it as timm:",
        ),
        ("test_vit?resize=3", r"timm:test_vit does not take the setting 'resize'. It takes: names."),
    ],
)
def test_bad_names_say_what_to_do(name, text):
    with pytest.raises(ForetellError, match=text) as caught:
        load(f"timm:{name}")
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_a_network_and_one_without_a_head(tmp_path):
    """A traceback for a folder without weights, or random weights in their place; features taken for classes."""
    with pytest.raises(ForetellError, match=r"does not hold a network of timm .* It needs config.json and model.safe"):
        load(f"timm:{tmp_path}")
    save_timm(tmp_path, "test_vit", 0)
    with pytest.raises(ForetellError, match="has no classification head"):
        load(f"timm:{tmp_path}")
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(ForetellError, match="does not hold a network of timm"):
        load(f"timm:{tmp_path}")
