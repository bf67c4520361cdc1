"""Some pictures of a set."""

from __future__ import annotations

import numpy as np
import pytest

from study.network.sources import open_set
from study.plan.config import ImageSource
from study.workspace.workspace import ROOT


@pytest.fixture(scope="module")
def images():
    return open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 12}), ROOT)


def test_some_images_are_those_with_all_that_is_known_of_them(images):
    """Catches what is still counted by the whole set: a mask, a context, a changed picture of another row."""
    rows = [7, 2, 9]
    some = images.only(rows)
    assert len(some) == 3
    assert some.digest not in (images.digest, images.only([2, 7, 9]).digest)
    for k, i in enumerate(rows):
        assert (some.ids[k], some.labels[k], some.contexts[k]) == (images.ids[i], images.labels[i], images.contexts[i])
        assert np.array_equal(np.asarray(some.open(k)), np.asarray(images.open(i)))
        assert np.array_equal(some.mask(k), images.mask(i))
        assert np.array_equal(some.parts(k)[0], images.parts(i)[0])
        for name, factor in some.factors.items():
            whole = images.factors[name]
            assert factor.known is None or factor.known[k] == whole.known[i]
            value = factor.values[-1]
            assert np.array_equal(np.asarray(factor.do(k, value)), np.asarray(whole.do(i, value)))


def test_all_images_in_their_order_are_the_set_itself(images):
    assert images.only(range(12)) is images
    assert images.only(range(11)) is not images
