"""Networks with prototypes: which are found in an image, against loops over all patches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from core.concepts.prototypes import find_matches, has_prototypes, locate_part, show_match
from core.errors import ForetellError
from core.network.classifier import Classifier
from data.scenes.splits import picture
from study.network.sources import open_classifier
from tests.core.scenes import scene_net


@pytest.fixture(scope="module")
def network() -> Classifier:
    return open_classifier("scenes:prototypes", Path.cwd(), "cpu")


def test_matches_are_those_of_the_closed_form(network: Classifier) -> None:
    """log((d² + 1) / (d² + ε)) of every patch, by a loop. Catches rows for columns, and weights of another class."""
    inputs = network.preprocess(picture("standard", 0, 5).image)
    with network.exclusive() as module, torch.no_grad():
        net: Any = module
        patches = net.describe(inputs[None])[0].double()
        prototypes, weights = net.prototypes.double(), net.head.weight.double()
    best = torch.full((len(prototypes),), -torch.inf, dtype=torch.double)
    place = {}
    for row in range(12):
        for column in range(12):
            squared = (patches[:, row, column] - prototypes).square().sum(1)
            alike = torch.log((squared + 1) / (squared + 1e-4))
            for j in torch.nonzero(alike > best)[:, 0].tolist():
                best[j], place[j] = alike[j], (row, column)
    logits = network.logits(inputs[None])[0]
    torch.testing.assert_close((weights @ best).float(), logits, rtol=1e-3, atol=1e-3)
    for k in (0, 5, 9):
        found = find_matches(network, inputs, k, count=80)
        own = [j for j in range(80) if int(weights[:, j].argmax()) == k]
        assert sorted(match.prototype for match in found) == own
        assert [m.contribution for m in found] == sorted((m.contribution for m in found), reverse=True)
        for match in found:
            adds = float(weights[k, match.prototype] * best[match.prototype])
            assert match.similarity == pytest.approx(float(best[match.prototype]), rel=1e-3)
            assert match.contribution == pytest.approx(adds, rel=1e-3)
            assert (match.row, match.column) == place[match.prototype]


def test_a_training_image_is_most_like_its_own_prototype_where_the_prototype_is_from(network: Classifier) -> None:
    """Distance 0 there. Catches another training image, and a part elsewhere in it."""
    with network.exclusive() as module:
        image, row, column = module.show_prototype(31)  # type: ignore[operator]
    (match,) = [m for m in find_matches(network, network.preprocess(image), 6, count=5) if m.prototype == 31]
    assert (match.row, match.column) == (row, column)
    assert match.similarity > 8  # log(1 / ε) = 9.2 where the distance is 0
    shown, part = show_match(network, match)
    assert shown.tobytes() == image.tobytes()
    assert part.left <= (column + 0.5) / 12 <= part.right
    assert part.top <= (row + 0.5) / 12 <= part.bottom


def test_a_part_is_cut_at_the_edges() -> None:
    corner, middle = locate_part(0, 11, (12, 12)), locate_part(5, 3, (12, 24))
    assert (corner.left, corner.top, corner.right, corner.bottom) == (10 / 12, 0, 1, 2 / 12)
    assert (middle.left, middle.top, middle.right, middle.bottom) == (2 / 24, 4 / 12, 5 / 24, 7 / 12)


def test_other_networks_are_refused() -> None:
    assert not has_prototypes(scene_net())
    with pytest.raises(ForetellError, match="does not predict from prototypes: choose scenes:prototypes"):
        find_matches(scene_net(), torch.zeros(3, 96, 96), 0)
