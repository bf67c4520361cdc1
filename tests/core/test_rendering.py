from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from core.drawing.rendering import (
    AGAINST,
    FOR,
    NEUTRAL,
    UNCERTAIN,
    Scale,
    draw_error,
    heatmap,
    overlay,
    scale_of,
    shared_scales,
    tile_images,
    with_scale,
)
from core.types import Explanation

SIZE = (40, 40)


def explanation(values, zero=0.0, error=None):
    return Explanation(torch.tensor(values, dtype=torch.float32), zero, (), error)


def centre(picture):
    return np.asarray(picture)[20, 20].astype(float)


def test_zero_is_neutral_wherever_the_rest_of_the_map_lies():
    """Min-max scaling, the common mistake, would colour a zero beside large positive values blue."""
    values = torch.zeros(4, 4)
    values[0, 0] = 9.0
    scale = scale_of(explanation(values[None].tolist()))
    np.testing.assert_allclose(centre(heatmap(values, scale, SIZE)), NEUTRAL, atol=1)
    grey = Image.new("RGB", (4, 4), (90, 90, 90))
    np.testing.assert_allclose(centre(overlay(grey, scale.normalise_map(values), SIZE, 0.7)), [90, 90, 90], atol=1)


def test_sign_is_colour_and_strength_is_saturation():
    scale = Scale(zero=0.2, limit=0.5)
    for value, colour in ((0.7, FOR), (-0.3, AGAINST)):
        np.testing.assert_allclose(centre(heatmap(torch.full((4, 4), value), scale, SIZE)), colour, atol=1)
    half = centre(heatmap(torch.full((4, 4), 0.45), scale, SIZE))
    np.testing.assert_allclose(half, (NEUTRAL + FOR) / 2, atol=1)


def test_the_two_colours_differ_for_every_colour_vision():
    """Simulated protanopia and deuteranopia (Viénot 1999) keep the two far apart."""
    to_lms = np.array([[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]])
    missing_l = np.array([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]])
    missing_m = np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]])
    for blind in (missing_l, missing_m):
        seen = [np.linalg.inv(to_lms) @ blind @ to_lms @ colour for colour in (FOR, AGAINST)]
        assert np.linalg.norm(seen[0] - seen[1]) > 80


def test_scale_never_zooms_into_noise():
    noise = torch.full((1, 4, 4), 0.1)
    quiet = explanation((0.01 * torch.ones(1, 4, 4)).tolist(), error=noise)
    assert scale_of(quiet).limit >= 0.6 - 1e-6


def test_evidence_stays_and_noise_fades():
    """v^2 / (v^2 + (2 se)^2): half is left at 2 standard errors, all but nothing at a half, nearly all at 20."""
    scale, error = Scale(0.0, 1.0), torch.full((1, 3), 0.01)
    shown = scale.normalise_map(torch.tensor([[0.02, 0.005, -0.2]]), error)
    np.testing.assert_allclose(shown, [[0.01, 0.005 / 17, -0.2 / 1.01]], rtol=1e-5)


def test_scale_is_shared_or_own():
    weak, strong = explanation([[[1.0, 0.0]]]), explanation([[[5.0, 0.0]]])
    assert scale_of(weak).limit < scale_of(strong).limit
    shared = shared_scales([weak, strong])
    assert [scale.limit for scale in shared] == pytest.approx([float(np.quantile([1, 0, 5, 0], 0.995))] * 2)
    apart = [Explanation(torch.tensor([[[one]]]), zero, ()) for one, zero in ((1.0, 0.5), (5.0, 4.0))]
    assert [scale.zero for scale in shared_scales(apart)] == [0.5, 4.0]
    assert scale_of(explanation([[[0.0, 0.0]]])).limit == 1.0


def test_clipping_shows_what_a_few_extreme_values_hide():
    """99 values of .1 and one of 10: clipped at 2% they are drawn at full colour, at .5% hardly at all."""
    values = torch.full((1, 10, 10), 0.1)
    values[0, 0, 0] = 10.0
    one = Explanation(values, 0.0, ())
    middle = {clip: shared_scales([one], 1 - clip / 100)[0].normalise_map(values[0])[5, 5] for clip in (0.5, 2.0)}
    assert middle[0.5] < 0.05
    assert middle[2.0] == pytest.approx(1.0)


def test_scale_is_written_on_the_image():
    plain = Image.new("RGB", (120, 60), "white")
    first = np.asarray(with_scale(plain, Scale(0, 1), "fish"))
    assert first.shape[0] > 60
    assert not np.array_equal(first, np.asarray(with_scale(plain, Scale(0, 2), "fish")))
    assert not np.array_equal(first, np.asarray(with_scale(plain, Scale(0, 1), "boat")))


def test_a_standard_error_has_colours_of_its_own():
    """Catches a standard error in the colours of evidence: none is near-white, the largest violet, nothing is blue."""
    drawn = np.asarray(draw_error(torch.tensor([[0.0, 0.05, 0.1]]), 0.1, (3, 1)), dtype=float)[0]
    np.testing.assert_allclose(drawn[0], NEUTRAL)
    np.testing.assert_allclose(drawn[2], UNCERTAIN)
    np.testing.assert_allclose(drawn[1], (NEUTRAL + UNCERTAIN) / 2, atol=1)


def test_tiles_lie_in_rows_with_gaps_between_them():
    """Closed form. Catches columns for rows, a gap at the edge, and a last row that is cut off or missing."""
    images = [Image.new("RGB", (5, 3), (k, 0, 0)) for k in range(5)]
    sheet = np.asarray(tile_images(images, 2, gap=1))
    assert sheet.shape == (3 * 3 + 2, 2 * 5 + 1, 3)
    starts = [(0, 0), (0, 6), (4, 0), (4, 6), (8, 0)]
    covered = np.zeros(sheet.shape[:2], bool)
    for k, (top, left) in enumerate(starts):
        assert (sheet[top : top + 3, left : left + 5] == (k, 0, 0)).all()
        covered[top : top + 3, left : left + 5] = True
    assert (sheet[~covered] == 255).all()
    assert tile_images([], 3).size == (1, 1)
