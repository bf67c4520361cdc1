from __future__ import annotations

import copy
import importlib
import json

import pytest
import torch
from torch import nn

from core.attribution import METHODS
from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.classifier import Classifier
from core.sources import load
from tests.core.sources.conftest import build_small_network, save_program

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


@pytest.fixture(scope="module")
def network():
    return build_small_network()


def script(network, path):
    torch.jit.save(torch.jit.trace(network, torch.zeros(2, 3, 40, 48)), path)
    return path


@pytest.fixture(scope="module")
def functional():
    import_torchvision()
    return importlib.import_module("torchvision.transforms.functional")


def check(classifier, network, picture, size, functional):
    """Compare inputs with torchvision's own functions and logits with the network that was exported."""
    short = max(round(side * 256 / 224) for side in size)
    cropped = functional.center_crop(functional.resize(picture, short), size)
    expected = functional.normalize(functional.to_tensor(cropped), MEAN, STD)[None]
    inputs = classifier.preprocess(picture)[None]
    torch.testing.assert_close(inputs, expected)
    with torch.no_grad():
        torch.testing.assert_close(classifier.logits(inputs.repeat(3, 1, 1, 1)), network(expected).repeat(3, 1))


@pytest.mark.parametrize(("dynamic", "shape"), [(True, (2, 3, 40, 48)), (False, (1, 3, 40, 48))])
def test_a_program_gives_the_logits_of_its_network(tmp_path, network, picture, functional, dynamic, shape):
    """Another input size than the program's, training mode, or a batch that a program for one image refuses."""
    path = save_program(tmp_path / "net.pt2", network, shape=shape, dynamic=dynamic)
    classifier = load(str(path))
    assert classifier.input_shape == (3, 40, 48)
    check(classifier, network, picture, (40, 48), functional)
    assert classifier.name == "net"
    assert classifier.categories == ("class 0", "class 1", "class 2")
    assert classifier.mean_colour == (124, 116, 104)


def test_a_script_and_its_sidecar(tmp_path, network, picture, functional):
    """A sidecar that is not read: names by number and an input of 224 pixels."""
    script(network, tmp_path / "net.pt")
    facts = {"categories": ["a", "b", "c"], "size": [40, 48], "mean": [0, 0.5, 1], "std": [1, 1, 1], "resize": 50}
    (tmp_path / "net.json").write_text(json.dumps(facts))
    classifier = load("exported:net.pt", base=tmp_path)
    cropped = functional.center_crop(functional.resize(picture, 50), (40, 48))
    expected = functional.to_tensor(cropped) - torch.tensor([0, 0.5, 1])[:, None, None]
    torch.testing.assert_close(classifier.preprocess(picture), expected)
    with torch.no_grad():
        torch.testing.assert_close(classifier.logits(expected[None]), network(expected[None]))
    assert classifier.categories == ("a", "b", "c")
    assert classifier.mean_colour == (0, 128, 255)


def test_methods_that_need_gradients_or_masks_run_on_a_program(tmp_path, network):
    """A program without gradients. Oracle: the gradient of the network that was exported."""
    classifier = load(str(save_program(tmp_path / "net.pt2", network)))
    inputs = torch.rand((1, 3, 40, 48), generator=torch.Generator().manual_seed(0))
    plain = Classifier(copy.deepcopy(network), classifier.preprocess, name="plain")
    given = METHODS["gradient"](classifier, inputs, [1]).map
    torch.testing.assert_close(given, METHODS["gradient"](plain, inputs, [1]).map, rtol=1e-3, atol=1e-6)
    assert float(given.std()) > 0
    occluded = METHODS["occlusion"](classifier, inputs, [1])
    torch.testing.assert_close(occluded.map, METHODS["occlusion"](plain, inputs, [1]).map, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("none.pt2", r"There is no file .*none.pt2. Give the path of an exported program, such as network.pt2"),
        (
            "weights.pt",
            r"weights.pt is not a program of torch.export.save or torch.jit.save .* Weights alone need",
        ),
        ("text.pt2", r"text.pt2 is not a program of"),
        ("batch.pt2", r"was exported for batches of exactly 5 images. Export it for any number: torch.export.export\("),
        ("flat.pt2", r"flat.pt2 takes \(.*8\) and not one batch of images \(B, C, H, W\)"),
        ("net.pt2?names=names.txt", r"net gives 3 logits but names 4 categories"),
        ("side.pt", r"side.json: sise: Extra inputs are not permitted. It takes: categories, mean, std, size, resize."),
        ("broken.pt", r"broken.json is not valid JSON .* Correct it or remove it."),
    ],
)
def test_bad_files_say_what_to_do(tmp_path, network, names, file, text):
    """A traceback, a network of random weights, or a refusal that does not say what to do."""
    save_program(tmp_path / "net.pt2", network)
    save_program(tmp_path / "batch.pt2", network, shape=(5, 3, 40, 48), dynamic=False)
    save_program(tmp_path / "flat.pt2", nn.Linear(8, 3), shape=(2, 8))
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    (tmp_path / "text.pt2").write_text("nothing")
    for name, content in (("side", '{"sise": 3}'), ("broken", "{")):
        script(network, tmp_path / f"{name}.pt")
        (tmp_path / f"{name}.json").write_text(content)
    with pytest.raises(ForetellError, match=text) as caught:
        load(file, base=tmp_path)
    assert "\n" not in str(caught.value)
