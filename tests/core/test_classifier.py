from __future__ import annotations

import threading
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from core.attribution.gradients.plain import gradient
from core.attribution.maps.cam import grad_cam
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import in_chunks
from tests.core.networks import SIDE, Awkward, awkward, pictures, unit


def test_head_times_features_is_the_logits():
    classifier, images = awkward(), pictures(5)
    features = torch.cat([classifier.features(images), torch.ones(5, 1)], 1).double()
    torch.testing.assert_close((features @ classifier.head.T).float(), classifier.logits(images), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chunk", [1, 2, 7])
def test_chunk_size_does_not_matter(chunk):
    classifier, images = awkward(), pictures(5)
    torch.testing.assert_close(
        classifier.logits(images, chunk=chunk), classifier.logits(images, chunk=5), rtol=1e-5, atol=1e-6
    )


def test_out_of_memory_halves_the_chunk_and_goes_on():
    network, sizes = Awkward(), []

    class Greedy(nn.Module):
        def forward(self, x):
            sizes.append(len(x))
            if len(x) > 2:
                raise torch.OutOfMemoryError("out of memory")
            return network(x)

    classifier = Classifier(Greedy(), unit, name="greedy")
    network.eval()
    sizes.clear()
    logits = classifier.logits(pictures(5), chunk=5)
    assert sizes == [5, 2, 2, 1]
    torch.testing.assert_close(logits, network(pictures(5)).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("count", "chunk", "expected"), [(8, 6, [4, 4]), (7, 3, [3, 2, 2]), (6, 3, [3, 3]), (2, 6, [2])]
)
def test_chunks_are_even(count, chunk, expected):
    """A short last chunk: 6 and 2 images of a ResNet-50's gradient take 7% longer than 4 and 4. Counted by hand."""
    sizes: list[int] = []

    def forward(part):
        sizes.append(len(part))
        return part

    inputs = torch.arange(count)
    assert torch.equal(in_chunks(forward, inputs, chunk), inputs)
    assert sizes == expected


def test_eval_mode_whatever_the_user_left():
    network = Awkward().train()
    classifier = Classifier(network, unit, name="training")
    assert torch.equal(classifier.logits(pictures(2)), classifier.logits(pictures(2)))  # dropout is off


def test_fingerprint_changes_with_one_weight_and_only_then():
    first, second = awkward(), awkward()
    assert first.fingerprint == second.fingerprint
    network = Awkward()
    with torch.no_grad():
        network.head.bias[0] += 1e-6
    assert Classifier(network, unit, name="x").fingerprint != first.fingerprint


def hooked_gradients(classifier: Classifier, images, stop: threading.Event):
    """What a hook-based method does to everybody who uses the network meanwhile."""
    while not stop.is_set():
        with classifier.exclusive() as module:
            hook = module.head.register_forward_hook(lambda m, given, output: output * 3)
            try:
                x = images.clone().requires_grad_()
                module(x.clone()).sum().backward(inputs=[x])
            finally:
                hook.remove()


@pytest.mark.parametrize("locked", [True, False])
def test_the_lock_keeps_another_threads_hooks_out(locked, monkeypatch):
    """Without the lock activation maps come out wrong, silently: the negative control shows the test can fail."""
    classifier, images = awkward(), pictures(2)
    expected = grad_cam(classifier, images, [0, 1], sign="signed").map
    if not locked:
        monkeypatch.setattr(classifier, "_lock", nullcontext())
    stop = threading.Event()
    other = threading.Thread(target=hooked_gradients, args=(classifier, images, stop))
    other.start()
    try:
        wrong = 0
        for _ in range(100):
            try:
                wrong += not torch.equal(grad_cam(classifier, images, [0, 1], sign="signed").map, expected)
            except ForetellError:  # the other thread's hook took the gradient away
                wrong += 1
            if wrong and not locked:
                break
    finally:
        stop.set()
        other.join()
    assert (wrong == 0) == locked


class Viewing(nn.Module):
    """Flattens maps by ``view``, as many networks do: it takes its inputs in no other layout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4 * (SIDE - 2) ** 2, 3)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).view(len(x), -1))


def test_a_network_that_minds_the_layout_of_its_input_is_left_in_its_own():
    network, images = Viewing(), pictures(2)
    classifier = Classifier(network, unit, name="viewing")
    torch.testing.assert_close(classifier.logits(images), network(images).detach(), rtol=1e-5, atol=1e-6)
    leaf = images.clone().requires_grad_()
    (expected,) = torch.autograd.grad(network(leaf)[:, 1].sum(), leaf)
    torch.testing.assert_close(gradient(classifier, images, [1, 1]).map, expected.sum(1), rtol=1e-5, atol=1e-6)


def test_fill_is_a_image_of_one_colour_through_the_own_transforms():
    classifier = awkward()
    assert torch.equal(classifier.fill("black"), torch.full((3, SIDE, SIDE), -1.0))
    expected = torch.tensor(classifier.mean_colour) / 127.5 - 1
    torch.testing.assert_close(classifier.fill("mean")[:, 0, 0], expected, rtol=0, atol=1e-6)
    with pytest.raises(ForetellError, match="Unknown fill 'grey'"):
        classifier.fill("grey")


def test_any_mode_of_image_is_taken():
    classifier = awkward()
    for mode in ("L", "RGBA", "P", "CMYK"):
        image = Image.fromarray(np.full((20, 30), 99, dtype=np.uint8)).convert(mode)
        assert classifier.preprocess(image).shape == (3, SIDE, SIDE)


class Tuple(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)), x


class NoHead(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


class SoftmaxAfter(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 4)

    def forward(self, x):
        return self.head(x.mean((2, 3))).softmax(1)


def poisoned():
    network = Awkward()
    with torch.no_grad():
        network.conv1.weight[0, 0, 0, 0] = float("nan")
    return network


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Classifier(Tuple(), unit, name="pair"), "pair returned tuple; wrap it"),
        (lambda: Classifier(poisoned(), unit, name="bad"), "bad has NaN or infinite values in 'conv1.weight'"),
        (lambda: Classifier(Awkward(), unit, ["a", "b"], name="net"), "net gives 3 logits but names 2 categories"),
        (lambda: Classifier(nn.Linear(5, 2), unit, name="odd"), r"odd fails on an image .*\(RuntimeError: .*shapes"),
        (lambda: Classifier(Awkward(), lambda image: image, name="raw"), r"raw fails on an image .*AttributeError"),
        (lambda: Classifier(NoHead(), unit, name="bare").head, "bare does not end in one linear layer"),
        (lambda: Classifier(SoftmaxAfter(), unit, name="soft").head, "soft does not end in one linear layer"),
        (lambda: gradient(awkward(), pictures(1), [3]), "Target 3 is not a class of awkward: it has classes 0 to 2"),
        (lambda: gradient(awkward(), pictures(2), [0]), "2 images but 1 targets"),
        (lambda: gradient(awkward(), pictures(1)[:, :, :5], [0]), "awkward takes images"),
    ],
)
def test_bad_input_names_the_culprit(make, text):
    with pytest.raises(ForetellError, match=text):
        make()


class Branching(Awkward):
    """Its way depends on its values, so it cannot be traced."""

    def forward(self, x):
        return super().forward(x) if x.mean() > -2 else self.head(torch.zeros(len(x), 8))


@pytest.mark.parametrize("make", [Awkward, Branching])
def test_predictions_are_the_networks_own_and_leave_it_alone(make):
    """Folding batch norms must not show in the logits, and a network that cannot be traced must still work."""
    network = make().eval()
    network.bn.running_mean.normal_(generator=torch.Generator().manual_seed(0))
    before = {key: value.clone() for key, value in network.state_dict().items()}
    strides = [p.stride() for p in network.parameters()]
    classifier, images = Classifier(network, unit, name="own"), pictures(4)
    with torch.no_grad():
        torch.testing.assert_close(classifier.logits(images), network(images.clone()), rtol=1e-5, atol=1e-5)
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())
    assert strides == [p.stride() for p in network.parameters()]


def test_another_threads_hook_cannot_reach_a_prediction():
    classifier, images = awkward(), pictures(2)
    expected = classifier.logits(images)
    with classifier.exclusive() as module:
        hook = module.conv1.register_forward_hook(lambda m, i, o: o * 3)
        assert torch.equal(classifier.logits(images), expected)
        hook.remove()
