"""Wrong labels, neighbours and the plane, against closed forms, slow re-implementations and planted errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.debugging.labels import confident_learning
from core.debugging.neighbours import nearest, principal_plane
from core.errors import ForetellError


def slow_joint(p, y):
    """Equations 1 and 2 of arXiv:1911.00068, picture by picture."""
    classes = p.shape[1]
    threshold = [np.mean([p[n, j] for n in range(len(y)) if y[n] == j]) for j in range(classes)]
    counted = np.zeros((classes, classes), dtype=int)
    wrong = []
    for n in range(len(y)):
        passing = [j for j in range(classes) if p[n, j] >= threshold[j]]
        if passing:
            best = max(passing, key=lambda j: p[n, j])
            counted[y[n], best] += 1
            if best != y[n]:
                wrong.append(n)
    return counted, wrong


def test_the_confident_joint_is_that_of_the_equations():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(4, 0.5), 300)
    y = rng.integers(0, 4, 300)
    found = confident_learning(p, y)
    counted, wrong = slow_joint(p, y)
    np.testing.assert_array_equal(found.counted, counted)
    assert np.flatnonzero(found.likely).tolist() == wrong
    # Equation 3: every row has the share of its label.
    np.testing.assert_allclose(found.joint.sum(1), np.bincount(y) / 300)
    np.testing.assert_allclose(found.joint[0], counted[0] / counted[0].sum() * (y == 0).mean())


def test_by_hand():
    """Class 0 is answered timidly: its threshold is .5, so .55 counts as it, though .45 < .9 would not count as 1."""
    p = np.array([[0.55, 0.45], [0.45, 0.55], [0.05, 0.95], [0.15, 0.85], [0.6, 0.4]])
    found = confident_learning(p, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(found.thresholds, [0.5, (0.95 + 0.85 + 0.4) / 3])
    assert found.instead.tolist() == [0, -1, 1, 1, 0]
    assert found.likely.tolist() == [False, False, False, False, True]
    np.testing.assert_allclose(found.margin, [0.1, -0.1, 0.9, 0.7, -0.2])
    np.testing.assert_allclose(found.joint, [[0.4, 0], [0.2, 0.4]])
    assert found.share == pytest.approx(0.2)


def test_images_without_a_label_and_classes_without_images_are_left_out():
    p = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.1, 0.9], [0.2, 0.2, 0.6]])
    found = confident_learning(p, [0, 1, -1, 1])
    assert np.isnan(found.thresholds[2])
    assert found.instead.tolist() == [0, 1, -1, -1]  # nothing can be counted as a class that has no pictures
    assert np.isnan(found.margin[2])
    assert found.counted.sum() == 2


def test_noise_of_a_known_matrix_is_found_again():
    """Ideal answers of a world that mislabels 20 % of class 0 as class 1: the joint is that world's (theorem 1)."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 3000)
    labels = np.where((truth == 0) & (rng.random(3000) < 0.2), 1, truth)
    noise = np.array([[0.8, 0.2, 0], [0, 1, 0], [0, 0, 1]])
    found = confident_learning(noise[truth], labels)
    np.testing.assert_array_equal(found.likely, labels != truth)
    assert found.joint[1, 0] == pytest.approx(((labels == 1) & (truth == 0)).mean())


def test_equal_answers_reach_their_mean():
    """A mean of equal numbers may come out above them: then a class would count nothing."""
    p = np.array([[0.1, 0.05], [0.1, 0.05], [0.1, 0.05], [0.0, 0.7], [0.0, 0.7]])
    assert p[:3, 0].mean() > 0.1
    assert confident_learning(p, [0, 0, 0, 1, 1]).counted.tolist() == [[3, 0], [0, 2]]


@pytest.mark.parametrize(("labels", "sentence"), [([0, 0], "two or more classes"), ([0], "do not match")])
def test_labels_that_say_nothing_are_refused(labels, sentence):
    with pytest.raises(ForetellError, match=sentence):
        confident_learning([[0.5, 0.5], [0.1, 0.9]], labels)


def test_neighbours_are_those_of_every_pair_measured(monkeypatch):
    features = torch.rand(70, 5, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr("core.debugging.neighbours.ROWS", 16)
    found = nearest(features, 4)
    unit = features.double().numpy()
    unit = unit / np.sqrt((unit**2).sum(1, keepdims=True))
    for i in range(70):
        apart = {j: float(np.sqrt(((unit[i] - unit[j]) ** 2).sum())) for j in range(70) if j != i}
        near = sorted(apart, key=apart.__getitem__)[:4]
        assert found.indices[i].tolist() == near
        np.testing.assert_allclose(found.distances[i], [apart[j] for j in near], atol=1e-9)


def test_an_outlier_is_the_farthest_and_a_copy_is_at_no_distance():
    """On a circle: nine directions close together, one opposite; the last two the same up to their length."""
    angles = torch.tensor([0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, torch.pi, 0.08, 0.08])
    features = torch.stack([angles.cos(), angles.sin()], 1)
    features[9] *= 5
    found = nearest(features, 3)
    assert found.rank[7] == 1
    assert found.isolation[7] == pytest.approx(2 * np.cos(0.06 / 2), abs=1e-6)  # the third nearest: a chord
    assert found.indices[9, 0] == 8
    assert found.distances[9, 0] == pytest.approx(0, abs=1e-6)
    assert nearest(features[:3], 10).indices.shape == (3, 2)
    with pytest.raises(ForetellError, match="no neighbours"):
        nearest(features[:1])


def test_the_plane_is_that_of_the_singular_vectors():
    features = torch.rand(40, 6, generator=torch.Generator().manual_seed(3)).double() * torch.tensor([5, 3, 1, 1, 1, 1])
    places, shares = principal_plane(features)
    centred = (features - features.mean(0)).numpy()
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(places), np.abs(left[:, :2] * sizes[:2]), atol=1e-8)
    np.testing.assert_allclose(shares, sizes[:2] ** 2 / (sizes**2).sum())
    with pytest.raises(ForetellError, match="nothing to project"):
        principal_plane(torch.ones(4, 3))
