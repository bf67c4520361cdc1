from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from core.attribution.relevance.deeplift import deep_shap, deeplift
from core.attribution.relevance.differences import Differences, contributions
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import ToyA, awkward, pictures, raw
from tests.core.test_lrp import F1, F2, X, lively, resnet, seeded, toy

TOY = torch.tensor([20.0, 50.0, 30.0]).view(1, 1, 1, 3)
EVERY_RULE = ["rescale", "reveal_cancel", "mixed"]


def explained(network, x, reference, rule="rescale", target=0):
    """Contributions and the difference they are to sum to, in the network's own precision."""

    def chosen(logits):
        return logits[:, target]

    found, logits, start = contributions(network, x, reference, Differences("net", "deeplift", rule), chosen)
    return found, chosen(logits) - chosen(start)


class Lambda(nn.Module):
    """A function of the flattened input as a network of one logit and its negative."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        f = self.function(x.flatten(1))
        return torch.stack([f, -f], 1)


def row(*values):
    return torch.tensor([[list(values)]], dtype=torch.float64)[None]


def test_published_numbers():
    """Toy A by captum 0.9.0: (78, 195, 117); its ReLUDeepLiftModel at (1, 2): (2, 1); section 2.1 of the paper:
    min(1, x1 + x2) at (1, 1) gives .5 each where the gradient is 0; relu(x - 10) at 10.37 gives .37."""
    assert deeplift(toy(ToyA()), TOY, [0]).map.flatten().tolist() == pytest.approx([78, 195, 117], rel=1e-5)
    two = Lambda(lambda x: 2 * torch.relu(x[:, 0]) + 2 * torch.relu(x[:, 1] - 1.5))
    assert explained(two, row(1, 2), row(0, 0))[0].flatten().tolist() == pytest.approx([2, 1])
    saturated = Lambda(lambda x: 1 - torch.relu(1 - (x[:, 0] + x[:, 1])))
    assert explained(saturated, row(1, 1), row(0, 0))[0].flatten().tolist() == pytest.approx([0.5, 0.5])
    bias = Lambda(lambda x: torch.relu(x[:, 0] - 10))
    assert float(explained(bias, row(10.37), row(0.0))[0]) == pytest.approx(0.37)


class Minimum(nn.Module):
    """min(x1, x2) = x1 - relu(x1 - x2), its inner unit a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.h = nn.Linear(2, 1, bias=False).double()
        with torch.no_grad():
            self.h.weight.copy_(torch.tensor([[1.0, -1.0]]))

    def forward(self, x):
        x = x.flatten(1)
        f = x[:, 0] - torch.relu(self.h(x))[:, 0]
        return torch.stack([f, -f], 1)


def test_reveal_cancel_sees_what_cancels():
    """Section 3.5.3: at min(x1, x2) RevealCancel halves, Rescale gives the smaller everything or too much."""
    for x, halves, rescaled in ((row(3, 1), [0.5, 0.5], [0, 1]), (row(2, 5), [1, 1], [2, 0])):
        found, _ = explained(Minimum(), x, torch.zeros_like(x), "reveal_cancel")
        assert found.flatten().tolist() == pytest.approx(halves)
        found, _ = explained(Minimum(), x, torch.zeros_like(x), "rescale")
        assert found.flatten().tolist() == pytest.approx(rescaled)


def test_functionally_equal_networks_get_the_published_contributions():
    """Sundararajan et al. 2017, figure 7, at (3, 1): (1.5, -.5) and (2, -1)."""
    x = torch.tensor([3.0, 1.0, 0.0]).view(1, 1, 1, 3)
    maps = [deeplift(toy(network), x, [0], baseline="zero").map.flatten().tolist() for network in (F1(), F2())]
    assert maps[0] == pytest.approx([1.5, -0.5, 0], abs=1e-6)
    assert maps[1] == pytest.approx([2, -1, 0], abs=1e-6)


def test_max_pooling_goes_to_where_the_maximum_is_or_was():
    """captum 0.9.0, tests/attr/test_deeplift_basic.py: ones against [[1, 2, 3, 9], [4, 8, 6, 7]]. In a batch, each
    picture has its own maxima, where captum mixes those of the first into all."""
    network = Lambda(lambda x: F.max_pool1d(x[:, None], 4)[:, 0].sum(1))
    reference = torch.stack([row(1, 2, 3, 9)[0], row(4, 8, 6, 7)[0]])
    found, change = explained(network, torch.ones_like(reference), reference)
    assert found.flatten(1).tolist() == [[0, 0, 0, -8], [0, -7, 0, 0]]
    assert change.tolist() == [-8, -7]


def small_network(generator):
    def layer(module):
        for parameter in module.parameters():
            with torch.no_grad():
                parameter.normal_(0, 0.7, generator=generator)
        return module.double()

    return nn.Sequential(
        layer(nn.Conv2d(3, 4, 3, padding=1)), nn.MaxPool2d(3, 2, 1), nn.ReLU(), layer(nn.Conv2d(4, 5, 3)),
        nn.SiLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), layer(nn.Linear(20, 6)), nn.Tanh(), layer(nn.Linear(6, 3)),
    )  # fmt: skip


@pytest.mark.parametrize("rule", EVERY_RULE)
def test_contributions_sum_to_the_difference(rule):
    """Equation 1, to 1e-10 in float64, for 50 random networks with random references."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        network = small_network(generator)
        x, reference = torch.randn(2, 2, 3, 8, 8, generator=generator, dtype=torch.float64)
        found, change = explained(network, x, reference, rule)
        torch.testing.assert_close(found.sum((1, 2, 3)), change, rtol=1e-10, atol=1e-10)


def slow_rescale(weights, biases, x, reference):
    """A ReLU network by the chain rule of multipliers (eq. 3), one unit at a time, from the last layer down."""
    activations = []
    for start in (x, reference):
        values, kept = start, []
        for weight, bias in zip(weights, biases, strict=True):
            z = [sum(w * v for w, v in zip(row, values, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
            values = [max(v, 0.0) for v in z]
            kept.append((z, values))
        activations.append(kept)
    multipliers = [1.0]  # of the last layer's one output before its ReLU, which counts as the logit
    for k in reversed(range(len(weights))):
        if k < len(weights) - 1:
            (z, y), (z0, y0) = activations[0][k], activations[1][k]
            multipliers = [m * ((a - b) / (c - d)) for m, a, b, c, d in zip(multipliers, y, y0, z, z0, strict=True)]
        multipliers = [
            sum(m * row[i] for m, row in zip(multipliers, weights[k], strict=True)) for i in range(len(weights[k][0]))
        ]
    return [m * (a - b) for m, a, b in zip(multipliers, x, reference, strict=True)]


def test_agrees_with_a_slow_chain_of_multipliers():
    generator = torch.Generator().manual_seed(1)
    sizes = (5, 7, 4, 1)
    layers = [nn.Linear(a, b).double() for a, b in pairwise(sizes)]
    for layer in layers:
        for parameter in layer.parameters():
            nn.init.normal_(parameter, generator=generator)
    network = Lambda(lambda x: layers[2](torch.relu(layers[1](torch.relu(layers[0](x)))))[:, 0])
    x, reference = torch.randn(2, 5, generator=generator, dtype=torch.float64)
    weights, biases = ([getattr(layer, name).tolist() for layer in layers] for name in ("weight", "bias"))
    expected = slow_rescale(weights, biases, x.tolist(), reference.tolist())
    found, _ = explained(network, x.view(1, 1, 1, 5), reference.view(1, 1, 1, 5))
    assert found.flatten().tolist() == pytest.approx(expected, rel=1e-10)


def random_weights(network):
    generator = torch.Generator().manual_seed(2)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5, generator=generator)
    return network, torch.randn(2, 1, 3, 8, 8, generator=generator)


def test_agrees_with_captum_where_captum_is_right():
    from captum.attr import DeepLift

    network, (x, reference) = random_weights(
        nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(384, 8), nn.Sigmoid(), nn.Linear(8, 3)
        )
    )
    expected = DeepLift(network).attribute(x, reference, target=1).detach()
    found, _ = explained(network, x, reference, target=1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


def test_completes_where_captum_does_not():
    """captum 0.9.0: behind a ReLU its max-pooling loses what ties at 0, and shared in-place ReLUs stop it."""
    from captum.attr import DeepLift

    network, (x, reference) = random_weights(
        nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(96, 3))
    )
    _, delta = DeepLift(network).attribute(x, reference, target=1, return_convergence_delta=True)
    found, change = explained(network, x, reference, target=1)
    assert abs(float(delta / change)) > 0.005
    assert float((found.sum() - change).abs() / change.abs()) < 1e-5
    shared = DeepLift(resnet("resnet18"))
    with pytest.raises(RuntimeError):
        shared.attribute(torch.randn(1, 3, 64, 64), torch.zeros(1, 3, 64, 64), target=1)


@pytest.mark.parametrize(
    "name",
    ["resnet18", "resnet50", "vgg16", "mobilenet_v2", "densenet121", "efficientnet_b0", "convnext_tiny", "vit_b_16"],
)
def test_completes_on_an_unmodified_network(name):
    """Within 1e-5 of the difference in float32 (resnet50; 1e-4 allowed elsewhere), within 1e-10 in float64."""
    network, side = lively(name)
    x, reference = torch.randn(2, 1, 3, side, side, generator=seeded())
    found, change = explained(network, x, 0.3 * reference)
    with torch.no_grad():
        own = network(x)[:, 0] - network(0.3 * reference)[:, 0]
    torch.testing.assert_close(change, own, rtol=1e-4, atol=1e-5)
    assert float((found.sum() - change).abs() / change.abs()) < (1e-5 if name == "resnet50" else 1e-4)
    double, change = explained(network.double(), x.double(), 0.3 * reference.double())
    assert float((double.sum() - change).abs() / change.abs()) < 1e-10


class Attending(nn.Module):
    """Everything a transformer does to a batch: attention, layer norm, gates, means, batches turned around."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(3, 8), nn.Linear(8, 2)
        self.attention = nn.MultiheadAttention(8, 2)
        self.norm, self.group = nn.LayerNorm(8), nn.GroupNorm(2, 8)

    def forward(self, x):
        tokens = self.embed(x.flatten(2).permute(2, 0, 1))  # (L, B, E): the batch is not the first axis
        seen, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        tokens = self.norm(tokens + seen)
        tokens = tokens * torch.sigmoid(tokens) / (1 + tokens.square().mean(2, keepdim=True))
        whole = self.group(tokens.permute(1, 2, 0)).mean(2)
        return self.head(whole - whole.softmax(1))


@pytest.mark.parametrize("rule", EVERY_RULE)
def test_attention_norms_and_gates_complete(rule):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        network = Attending().double().eval()
    x, reference = torch.randn(2, 3, 3, 4, 4, generator=seeded(), dtype=torch.float64)
    found, change = explained(network, x, reference, rule)
    torch.testing.assert_close(found.sum((1, 2, 3)), change, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(change, (network(x) - network(reference))[:, 0].detach(), rtol=1e-10, atol=1e-12)
    alone, _ = explained(network, x[1:2], reference[1:2], rule)
    torch.testing.assert_close(found[1:2], alone, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("network", [small_network, Attending])
def test_one_reference_for_all_passes_once_unless_the_network_turns_the_batch_around(network):
    """And gives every picture what it gets alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        module = (network() if network is Attending else network(seeded())).double().eval()
    x, reference = torch.randn(4, 3, 8, 8, generator=seeded(), dtype=torch.float64).split([3, 1])
    rows: list[int] = []
    with module.register_forward_pre_hook(lambda _, given: rows.append(len(given[0]))):
        found, change = explained(module, x, reference.expand_as(x))
    # Two passes where one reference did; where it did not, that pass, the one that stopped, and two of all.
    assert rows == ([1, 3] if network is small_network else [1, 3, 3, 3])
    for i in range(3):
        alone, own = explained(module, x[i : i + 1], reference)
        torch.testing.assert_close(found[i : i + 1], alone, rtol=1e-9, atol=1e-13)
        torch.testing.assert_close(change[i : i + 1], own, rtol=1e-9, atol=1e-13)


def test_close_to_the_reference_it_is_the_gradient():
    """Section 3.5.2: near the reference the quotient gives way to the derivative, not to rounding."""
    network = small_network(torch.Generator().manual_seed(3)).float()
    x = torch.randn(1, 3, 8, 8, generator=seeded())
    near = x + 1e-6 * torch.randn(1, 3, 8, 8, generator=seeded())
    found, _ = explained(network, near, x)
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(network(leaf)[:, 0].sum(), leaf)
    multipliers = found / (near - x)
    assert float((multipliers - gradient).abs().max() / gradient.abs().max()) < 1e-2


def test_normalised_contributions_sum_to_zero_over_the_classes():
    """Equation 5: what speaks for every class speaks for none."""
    classifier, images = awkward(), pictures(1)
    maps = [deeplift(classifier, images, [k], output="normalised").map for k in range(3)]
    plain = [deeplift(classifier, images, [k]).map for k in range(3)]
    torch.testing.assert_close(sum(maps), torch.zeros_like(maps[0]), rtol=0, atol=1e-4 * float(maps[0].abs().max()))
    torch.testing.assert_close(maps[0] - maps[1], plain[0] - plain[1], rtol=1e-3, atol=1e-4)


def test_deep_shap_averages_over_references_and_tells_their_error():
    classifier, images = awkward(), pictures(2)

    def explain(samples, seed, **options):
        generator = torch.Generator().manual_seed(seed)
        return deep_shap(classifier, images, [0, 1], generator=generator, samples=samples, **options)

    few, many = explain(6, 1, source="noise"), explain(40, 2, source="noise")
    z = (few.map - many.map) / (few.error**2 + many.error**2).sqrt()
    assert 0.5 < float(z.square().mean().sqrt()) < 2
    assert all(abs(certificate.completeness) < 1e-4 for certificate in few.certificates)
    with pytest.raises(ForetellError, match="samples=1: DeepSHAP needs at least 2 references"):
        explain(1, 1)


def test_deep_shap_over_one_own_reference_is_deeplift():
    classifier, images = awkward(), pictures(2)
    own = classifier.fill("mean")[None]
    found = deep_shap(classifier, images, [0, 1], samples=2, references=own)
    expected = deeplift(classifier, images, [0, 1], baseline="mean")
    torch.testing.assert_close(found.map, expected.map, rtol=1e-5, atol=1e-6)
    assert float(found.error.max()) < 1e-5
    assert found.certificates[0].parameters["references"] == 1


def test_a_network_that_takes_another_way_for_the_reference_is_refused():
    class Fork(nn.Module):
        def forward(self, x):
            x = x.flatten(1)
            x = torch.relu(x) if x.sum() > 1 else torch.tanh(x.mean(1, keepdim=True).expand(-1, 3))
            return x[:, :2]

    with pytest.raises(ForetellError, match="runs different code for the image and for its reference"):
        deeplift(Classifier(Fork(), raw, name="fork"), X, [0])
