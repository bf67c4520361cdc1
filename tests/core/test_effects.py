"""Effects of interventions: closed forms on a linear network."""

from __future__ import annotations

import pytest
import torch

from core.errors import ForetellError
from core.faithfulness.effects import effect, share
from core.network.masked import scores
from tests.core.networks import SIDE, awkward, pictures
from tests.core.test_paths import linear


def test_the_effect_of_a_part_of_a_linear_network_is_its_weight_times_its_difference():
    """Closed form w . (x - mean of the others) over the part that is changed."""
    classifier, weight = linear()
    images = pictures(2)
    changed = images[:, None].repeat(1, 5, 1, 1, 1)
    changed[..., : SIDE // 2] = torch.randn(changed[..., : SIDE // 2].shape, generator=torch.Generator().manual_seed(2))
    expected = (weight[[1, 0]] * (images - changed.mean(1))).sum((1, 2, 3)).double()
    torch.testing.assert_close(effect(classifier, images, [1, 0], changed), expected, rtol=1e-4, atol=1e-5)


def test_probabilities_are_averaged_after_the_softmax():
    classifier, images = awkward(), pictures(2)
    changed = torch.stack([pictures(4, seed=k) for k in (5, 6)])
    found = effect(classifier, images, [2, 0], changed, output="probability")
    for k, target in enumerate([2, 0]):
        own = classifier.probabilities(images[k : k + 1])[0, target]
        assert float(found[k]) == pytest.approx(
            float(own - classifier.probabilities(changed[k])[:, target].mean()), abs=1e-6
        )
    assert effect(classifier, images, [2, 0], images[:, None]).tolist() == pytest.approx([0, 0], abs=1e-6)
    assert float((found - effect(classifier, images, [2, 0], changed)).abs().max()) > 1e-3
    assert scores(classifier, images, torch.tensor([2, 0]), "logit").dtype == found.dtype


def test_shares_count_effects_below_0_as_none():
    one, other = torch.tensor([3.0, -1.0, 2.0, -1.0]), torch.tensor([1.0, 2.0, -5.0, -2.0])
    assert share(one, other)[:3].tolist() == [0.75, 0, 1]
    assert share(one, other)[3].isnan()


@pytest.mark.parametrize("shape", [(2, 0, 3, SIDE, SIDE), (1, 2, 3, SIDE, SIDE), (2, 3, SIDE, SIDE)])
def test_changed_images_that_do_not_fit_are_refused(shape):
    with pytest.raises(ForetellError, match="at least one changed image"):
        effect(awkward(), pictures(2), [0, 1], torch.zeros(shape))
