"""Margins of a study's pictures, held against walks along lines and against their own definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.errors import ForetellError
from study.network.sources import class_of_labels
from study.workspace.seeds import seed_of
from tests.study.measures.grounds import asked, ground


def crossing(classifier, picture, direction):
    """Length of the shorter of the two walks along a line at whose end the answer is another: in steps of 1.2 %."""
    unit = direction / direction.norm()
    answer = int(classifier.logits(picture).argmax())
    lengths = torch.logspace(-1, 3, 800)
    found = []
    for sign in (1, -1):
        others = classifier.logits(picture + sign * lengths[:, None, None, None] * unit).argmax(1) != answer
        found += [float(lengths[others].min())] if others.any() else []
    return min(found)


def test_the_margin_along_one_random_line_is_where_a_walk_along_it_ends(tmp_path):
    """Catches another direction than the picture's own draw, a margin of all the space, or another picture's."""
    on = ground(tmp_path, "margin", directions="random", count=1)
    for index in (3, 4):
        candidate, number = asked(on, "adversarial", index)
        draws = torch.Generator().manual_seed(seed_of(7, "margin", "adversarial", index))
        line = torch.randn(on.inputs(candidate).shape, generator=draws)
        assert number.value == pytest.approx(crossing(on.classifier, on.inputs(candidate), line), rel=0.02)
        assert number.error == 0


def test_the_margin_between_classes_lies_between_the_least_and_that_of_one_pair(tmp_path):
    """Catches directions of other classes than the answer and the next likeliest, and a span that is left."""
    on = ground(tmp_path, "margin", directions="discriminative", count=4)
    candidate, number = asked(on, "adversarial", 4)
    pool, picture = on.sets["pool"], on.inputs(candidate)
    order = on.classifier.logits(picture)[0].argsort(descending=True).tolist()
    labels = class_of_labels(pool, on.classifier)
    pairs = [np.flatnonzero(labels == k)[:4] for k in order[:2]]
    lines = [
        on.classifier.preprocess(pool.open(int(a))) - on.classifier.preprocess(pool.open(int(b)))
        for a, b in zip(*pairs, strict=True)
    ]
    least = asked(ground(tmp_path, "margin"), "adversarial", 4)[1].value
    assert least < number.value <= 1.02 * min(crossing(on.classifier, picture, line) for line in lines)


def test_what_spans_nothing_is_refused(tmp_path):
    """Catches a margin of no directions, which is infinite for every picture."""
    with pytest.raises(ForetellError, match="count = 0 directions are too few"):
        asked(ground(tmp_path, "margin", count=0), "adversarial", 0)
