"""What layers hold. Numbers from closed forms, planted truths, statsmodels, and slow re-implementations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from statsmodels.multivariate.cancorr import CanCorr
from torch import nn
from torch.nn import functional as F

from core.errors import ForetellError
from core.layers.consistency import consistency
from core.layers.dissection import dissect
from core.layers.layers import maps_of, means_of
from core.layers.probe import _fit_linear, _fit_perceptron, linear_probe, out_of_fold, perceptron_probe
from core.layers.similarity import svcca
from data.scenes.splits import picture
from tests.core.networks import awkward, pictures
from tests.core.scenes import scene_net


def drawn(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=drawn(seed), dtype=torch.float64)


@pytest.fixture(scope="module")
def scenes():
    """128 scenes: their inputs (N, 3, 96, 96), classes, contexts and object masks."""
    network = scene_net()
    shown = [picture("standard", 3, i) for i in range(128)]
    inputs = torch.stack([network.preprocess(one.image) for one in shown])
    names = sorted({one.context for one in shown})
    contexts = torch.tensor([names.index(one.context) for one in shown])
    return network, inputs, contexts, torch.from_numpy(np.stack([one.mask for one in shown]))


# Layers


def test_maps_are_what_a_hook_sees_and_the_network_stays_as_it_was():
    classifier, images = awkward(), pictures(3)
    seen = []
    with classifier.exclusive() as module:
        before = {name: value.clone() for name, value in module.state_dict().items()}
        layer = next(name for name, part in module.named_modules() if isinstance(part, nn.Conv2d))
        with module.get_submodule(layer).register_forward_hook(lambda _, __, out: seen.append(out.clone())):
            module(images.clone())  # its first operation is in place
    found = maps_of(classifier, images, layer)
    torch.testing.assert_close(found, seen[0].detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(means_of(classifier, images, layer), found.mean((2, 3)))
    with classifier.exclusive() as module:
        assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
        assert not any(part._forward_hooks for part in module.modules())
    with pytest.raises(ForetellError, match="has no layer 'conv9'"):
        maps_of(classifier, images, "conv9")


# Probes


def test_a_probe_reads_what_is_there_and_nothing_else():
    """Labels that are a linear function: all; labels of their own: the interval holds what guessing gives."""
    x = normal(300, 5)
    there = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()
    found = linear_probe(x, there * 7)  # labels need not be 0, 1, 2
    assert found.accuracy > 0.93
    assert set(found.predicted.tolist()) <= {0, 7, 14, 21}
    nothing = linear_probe(x, torch.randint(0, 2, (300,), generator=drawn(1)))
    assert nothing.low < 0.5 < nothing.high
    assert 0.5 <= nothing.chance < 0.6


@pytest.mark.parametrize("labels", [2, 3])
def test_the_probe_is_the_penalised_multinomial_regression(labels):
    """Against torch's search, with more dimensions than pictures. Catches the penalty of another scale, or of one of
    two labels alone."""
    x, y = normal(30, 50).numpy(), np.arange(30) % labels
    found = _fit_linear(x, y, 2.0, lambda: None).predict_proba(x)
    w = torch.zeros(50, labels, dtype=torch.float64, requires_grad=True)
    b = torch.zeros(labels, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([w, b], max_iter=2000, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def loss():
        search.zero_grad()
        value = F.cross_entropy(torch.from_numpy(x) @ w + b, torch.from_numpy(y)) + 2.0 / 60 * w.square().sum()
        value.backward()
        return value

    search.step(loss)
    expected = (torch.from_numpy(x) @ w + b).softmax(1).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=5e-5)


def test_what_is_there_and_not_linear_is_read_by_the_perceptron_alone():
    """XOR of two planted signs: linear at chance, two layers all but perfect; noise is read by neither."""
    signs = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]).repeat(100, 1)
    x = torch.cat([(2.0 * signs - 1) * (0.5 + normal(400, 2).abs()), normal(400, 3)], 1)
    label = signs[:, 0] ^ signs[:, 1]
    linear, deep = linear_probe(x, label), perceptron_probe(x, label, hidden=8)
    assert linear.low < 0.5 < linear.high
    assert deep.accuracy > 0.98
    assert deep.low < deep.accuracy <= deep.high
    assert deep.chance == linear.chance
    assert (deep.predicted == label).double().mean() == pytest.approx(deep.accuracy)
    nothing = perceptron_probe(x, torch.randint(0, 2, (400,), generator=drawn(4)), hidden=8)
    assert nothing.low < 0.5 < nothing.high  # learned by heart perhaps, but not by the images held out
    with pytest.raises(ForetellError, match="at least one hidden unit"):
        perceptron_probe(x, label, hidden=0)


def test_the_perceptron_is_at_a_minimum_of_its_loss():
    """The loss as it is documented, by torch: its slope is 0 there, and it is below that of the best constant.

    Catches a penalty of another scale, another activation, and a search that is cut off.
    """
    x = normal(40, 4)
    y = x[:, :3].argmax(1)
    fit = _fit_perceptron(x.numpy(), y.numpy(), 2.0, lambda: None, hidden=6, generator=drawn(0))
    parts = [torch.from_numpy(one).requires_grad_() for one in (*fit.coefs_, *fit.intercepts_)]
    first, second, first_bias, second_bias = parts
    logits = torch.tanh(x @ first + first_bias) @ second + second_bias
    np.testing.assert_allclose(fit.predict_proba(x.numpy()), logits.softmax(1).detach(), atol=1e-12)
    loss = F.cross_entropy(logits, y) + 2.0 / 80 * (first.square().sum() + second.square().sum())
    loss.backward()
    assert max(float(one.grad.abs().max()) for one in parts) < 1e-4
    assert float(loss.detach()) < 0.8 * np.log(3)


def test_a_reader_is_stopped_within_a_fold():
    """Catches a Stop that waits for the end of a fold, which takes long with thousands of pictures."""
    told = []

    def stop(done, total, what):
        told.append((done, total, what))
        if len(told) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        out_of_fold(normal(50, 6), torch.arange(50) % 2, progress=stop)
    assert told == [(0, 5, "reading the features")] * 3


def test_a_image_is_read_by_a_reader_that_has_not_seen_it():
    """With a random label each and 200 dimensions every label is learned by heart, and none is read rightly."""
    labels = torch.randint(0, 4, (120,), generator=drawn(2))
    found = linear_probe(normal(120, 200), labels, penalty=1e-3)
    assert found.accuracy < 0.4
    with pytest.raises(ForetellError, match="5 images of each, not 1 of the rarest of 2"):
        linear_probe(normal(9, 2), torch.tensor([0] * 8 + [1]))
    with pytest.raises(ForetellError, match="same output for all"):
        linear_probe(torch.ones(20, 3), torch.arange(20) % 2)


# Similarity


def test_correlations_agree_with_statsmodels():
    x = normal(80, 4)
    y = x @ normal(4, 6, seed=1) + 0.8 * normal(80, 6, seed=2)
    found = svcca(x, y, share=1.0)
    expected = CanCorr((y - y.mean(0)).numpy(), (x - x.mean(0)).numpy()).cancorr
    np.testing.assert_allclose(found.correlations.numpy(), expected, atol=1e-10)
    assert found.kept == (4, 6)


def test_similarity_minds_no_axes_and_tells_chance():
    x, turn = normal(200, 6), normal(6, 6, seed=1)
    y = x @ normal(6, 5, seed=2) + normal(200, 5, seed=3)
    one, other = svcca(x, y, share=1.0), svcca(x @ turn + 3, y, share=1.0)
    torch.testing.assert_close(one.correlations, other.correlations)
    assert svcca(x, x @ turn, share=1.0).mean == pytest.approx(1)
    apart = svcca(x, normal(200, 6, seed=9), share=1.0)
    assert abs(apart.mean - apart.chance) < 3 * apart.chance_error
    assert apart.chance > 0.05  # above nothing: six directions of 200 pictures


def test_directions_of_little_variance_are_left_out():
    """Two that hold .995 of it are kept, and the noise of the others correlates with nothing."""
    x = torch.cat([normal(300, 2), 0.03 * normal(300, 8, seed=1)], 1)
    found = svcca(x, torch.cat([x[:, :2], 0.03 * normal(300, 8, seed=2)], 1))
    assert found.kept == (2, 2)
    assert found.mean > 0.999
    with pytest.raises(ForetellError, match="everything correlates"):
        svcca(normal(10, 6), normal(10, 6, seed=1), share=1.0)
    with pytest.raises(ForetellError, match="10 and 9 rows"):
        svcca(normal(10, 2), normal(9, 2))


# Knowledge consistency


def test_consistency_puts_each_part_into_its_order():
    x = normal(1200, 6)
    bent = torch.relu(x @ normal(6, 6, seed=1))
    for layer, expected in ((x @ normal(6, 4, seed=2), 0.99), (normal(1200, 4, seed=3), 0.0)):
        found = consistency(layer, x)
        assert float(found.shares[0]) == pytest.approx(expected, abs=0.02)
        assert float(found.shares[1:].abs().max()) < 0.02
    found = consistency(bent, x)
    # The linear part of relu(z) explains 1/4 of its 1/2 - 1/(2 pi) of variance, whatever the weights.
    assert float(found.shares[0]) == pytest.approx(0.25 / (0.5 - 0.5 / np.pi), abs=0.05)
    assert float(found.shares[1]) > 0.2
    assert found.inconsistent < 0.1
    assert float(found.shares.sum()) + found.inconsistent == pytest.approx(1)


def _noisy(seed):
    signal = normal(1600, 3, seed=100 + seed)
    return signal + normal(1600, 3, seed=200 + seed), signal


def test_noise_that_the_other_does_not_hold_is_inconsistent():
    """x = signal + noise of equal variance: half is consistent, and the standard error says how surely."""
    found = consistency(*_noisy(99))
    signal = normal(1600, 3)
    assert abs(found.inconsistent - 0.5) < 4 * float(found.errors.square().sum().sqrt())
    spread = [float(consistency(*_noisy(seed)).shares[0]) for seed in range(12)]
    assert 0.5 < float(found.errors[0]) / np.std(spread, ddof=1) < 2  # against the spread over sets of pictures
    assert float(consistency(signal, signal).errors[0]) < 1e-6


def test_places_of_a_image_stay_together():
    """Places of a picture are copies of each other here: dealt apart, anything could be learned by heart."""
    owner = torch.arange(16).repeat_interleave(40)
    x, y = normal(16, 30)[owner], normal(16, 5, seed=1)[owner]
    assert consistency(y, x, images=owner).inconsistent > 0.8
    assert consistency(y, x).inconsistent < 0.2
    with pytest.raises(ForetellError, match="7 images: consistency trains on some"):
        consistency(normal(7, 2), normal(7, 2))


def test_a_rotated_layer_is_consistent_everywhere_and_a_planted_channel_exactly_where_it_is():
    """A rotation loses nothing. A channel of noise at one place of nine is a blind spot there alone."""
    owner = torch.arange(120).repeat_interleave(9)
    other = normal(1080, 6)
    rotation = torch.linalg.qr(normal(6, 6, seed=1))[0]
    rotated = consistency(other @ rotation, other, images=owner)
    assert float(rotated.left.max()) < 1e-3
    assert float(rotated.channels.max()) < 1e-3
    place = torch.arange(1080) % 9
    planted = torch.where(place == 4, normal(1080, 1, seed=2)[:, 0], 0.0)
    found = consistency(torch.cat([other @ rotation, 3 * planted[:, None]], 1), other, images=owner)
    assert float(found.channels[:6].max()) < 0.05 < 0.8 < float(found.channels[6])
    left = torch.stack([found.left[place[found.rows] == k].mean() for k in range(9)])
    assert int(left.argmax()) == 4
    assert float(left[4]) > 20 * float(left[torch.arange(9) != 4].max())
    assert set(owner[found.rows].tolist()) == set(owner[found.rows[::9]].tolist())  # whole images, in order


# The built-in network


def test_the_scenes_network_knows_the_context_it_was_never_asked_about(scenes):
    network, inputs, contexts, masks = scenes
    found = linear_probe(means_of(network, inputs, "features"), contexts)
    assert found.low > found.chance
    maps = maps_of(network, inputs, "features")
    dissected = dissect(maps, torch.stack([masks, ~masks], 1), ["object", "context"], top=0.05)
    assert bool(dissected.detects.any())


def test_a_layer_holds_itself_and_an_untrained_network_less(scenes):
    network, inputs, *_ = scenes
    own = means_of(network, inputs, "features")
    again = svcca(own, own)
    assert again.mean == pytest.approx(1)
    found = consistency(own, own)
    assert float(found.shares[0]) > 0.98
    other = consistency(own, normal(len(own), own.shape[1]))
    assert other.inconsistent > 0.9
