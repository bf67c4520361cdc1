from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
import torch
from torch import fx, nn
from torch.utils._python_dispatch import TorchDispatchMode

from core.network.classifier import Classifier
from core.network.cpu import FusedConvolution
from core.network.inference import make_faster_copy, make_fused_copy
from tests.core.networks import Awkward, awkward, pictures, unit
from tests.core.tokens import hf_vit, timm_vit, torchvision_vit


def test_the_fused_program_gives_the_networks_logits_for_any_number_of_inputs():
    classifier = awkward()
    assert any(isinstance(module, FusedConvolution) for module in classifier._predictor.modules())
    with classifier.exclusive() as module:
        for count in (1, 2, 5, 17):
            images = pictures(count, seed=count)
            expected = module(images.clone()).detach()
            torch.testing.assert_close(classifier.logits(images), expected, rtol=1e-5, atol=1e-5)


def test_the_same_inputs_get_the_same_logits_bit_for_bit():
    """What is written over in one pass must not be read in the next."""
    classifier, images = awkward(), pictures(3)
    first = classifier.logits(images)
    assert all(torch.equal(classifier.logits(images), first) for _ in range(5))


class Branching(nn.Module):
    """Two networks: which one depends on the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        y = self.head(x.mean((2, 3)))
        return -y if float(x.detach().sum()) > 0 else y


def test_a_network_that_branches_on_values_is_not_fused():
    """Tracing would keep the branch of the example for all pictures."""
    network = Branching()
    classifier = Classifier(network, unit, name="branching")
    for images in (pictures(1).abs(), -pictures(1).abs()):
        torch.testing.assert_close(classifier.logits(images), network(images).detach(), rtol=1e-6, atol=1e-6)
    probe = classifier.fill("mean")[None]
    copy = make_faster_copy(network, probe)
    assert make_fused_copy(copy, probe) is copy


def test_a_program_that_answers_otherwise_is_not_used(monkeypatch):
    """The program is tried on other inputs: one that only knows the example is left."""
    probe = pictures(1)
    copy = make_faster_copy(Awkward().eval(), probe)
    with torch.no_grad():
        constant = copy(probe)

    class Parrot(nn.Module):
        def forward(self, x):
            return constant.expand(len(x), -1)

    monkeypatch.setattr("core.network.inference.fuse_layers", lambda network, probe: Parrot())
    assert make_fused_copy(copy, probe) is copy


@pytest.mark.parametrize("form", ["_copy", "_predictor"])
def test_copies_share_nothing_with_the_network(form):
    classifier = awkward()
    images = pictures(2)
    before = classifier.logits(images)
    getattr(classifier, form)
    with classifier.exclusive() as module, torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    assert torch.equal(classifier.logits(images), before)


def test_other_threads_ask_their_networks_while_one_is_traced():
    """torch calls every module of the process through its tracer meanwhile: two readers of a page met that."""
    tracing, asked = threading.Event(), threading.Event()

    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(3, 2)

        def forward(self, x):
            if isinstance(x, fx.Proxy):
                tracing.set()
                assert asked.wait(300)
            return self.head(x.mean((2, 3)))

    def trace() -> None:
        copies.append(make_faster_copy(slow, probe))

    slow, other, probe, copies = Slow().eval(), Branching().eval(), pictures(1), []
    expected, of_the_other = slow(probe), other(probe)
    thread = threading.Thread(target=trace)
    thread.start()
    assert tracing.wait(300)
    try:
        torch.testing.assert_close(other(probe), of_the_other)
    finally:
        asked.set()
        thread.join(300)
    (made,) = copies
    assert isinstance(made, fx.GraphModule)
    torch.testing.assert_close(made(probe), expected)


def test_many_threads_copy_at_once_and_leave_torch_as_it_was():
    """One tracer that ends while another is at work would leave the other's hold on every module for good."""
    call, read = nn.Module.__call__, nn.Module.__getattr__
    made = []

    class Sleepy(Awkward):
        def forward(self, x):
            if isinstance(x, fx.Proxy):
                time.sleep(0.05)
            return super().forward(x)

    def copied() -> None:
        network, probe = Sleepy().eval(), pictures(1)
        copy = make_faster_copy(network, probe)
        made.append([form(pictures(1)) for form in (network, copy, make_fused_copy(copy, probe))])

    threads = [threading.Thread(target=copied) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(made) == len(threads)
    for expected, folded, program in made:
        torch.testing.assert_close(folded, expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(program, expected, rtol=1e-4, atol=1e-4)
    assert nn.Module.__call__ is call
    assert nn.Module.__getattr__ is read


class Operations(TorchDispatchMode):
    """Counts the kernels that run, also those of the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, operation, types, given=(), options=None):
        self.counts[operation.overloadpacket.__name__] += 1
        return operation(*given, **(options or {}))


@pytest.mark.parametrize("make", [torchvision_vit, timm_vit, hf_vit])
def test_gradients_of_a_transformer_multiply_by_weights_once_and_attend_by_fused_kernels(make):
    """Catches weights that make torch multiply token by token (`bmm`), and attention spelt out with its softmax."""
    classifier = make()
    images = torch.rand(3, *classifier.input_shape, requires_grad=True)
    with classifier.differentiable() as network, torch.enable_grad(), Operations() as done:
        torch.autograd.grad(network(images)[:, 0].sum(), images)
    assert network is classifier._copy
    attention = {name: count for name, count in done.counts.items() if "scaled_dot_product" in name}
    assert sorted(name.endswith("_backward") for name in attention) == [False, True]
    assert set(attention.values()) == {3}  # blocks
    assert not done.counts.keys() & {"bmm", "baddbmm", "_softmax", "_safe_softmax"}
