"""The world where the truth is known: same integer, same scene; intervene on one thing, only that thing changes."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, binary_erosion

from data.errors import DataError
from data.scenes.contexts import CONTEXTS
from data.scenes.generator import USUAL_SHARE, Light, choose, draw_actor, render, render_empty
from data.scenes.shapes import CATEGORIES

HASH = """
import hashlib
from data.scenes.generator import render
total = hashlib.sha256()
for seed in (0, 7, 2**100 + 3):
    scene = render(seed)
    total.update(scene.image.tobytes() + scene.mask.tobytes() + scene.label.encode() + scene.context.encode())
print(total.hexdigest())
"""


def test_another_process_draws_the_same_scenes() -> None:
    """Catches randomness outside the seed: hash(), global generators, set order, what was drawn before."""
    render(3)  # this process has drawn something else first
    total = hashlib.sha256()
    for seed in (0, 7, 2**100 + 3):
        scene = render(seed)
        total.update(scene.image.tobytes() + scene.mask.tobytes() + scene.label.encode() + scene.context.encode())
    run = subprocess.run([sys.executable, "-c", HASH], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == total.hexdigest()


def test_other_integers_are_other_scenes() -> None:
    assert len({render(seed).image.tobytes() for seed in range(20)}) == 20


@pytest.mark.parametrize("category", CATEGORIES)
def test_do_context_changes_the_context_only(category: str) -> None:
    """Inside the eroded mask no grey level differs (but for slits narrower than a pixel, as between mast and sail);
    outside the object nearly everything does.
    """
    seed = 40
    sea, night = render(seed, category=category, context="sea"), render(seed, category=category, context="night")
    assert (sea.mask == night.mask).all()
    inside, outside = binary_erosion(sea.mask, iterations=3), ~binary_dilation(sea.mask, iterations=8)
    difference = np.abs(np.asarray(sea.image).astype(int) - np.asarray(night.image).astype(int)).max(axis=2)
    assert inside.sum() > 50
    assert (difference[inside] == 0).mean() > 0.95
    # A twig or post before the object may reach outside; the rest of the surroundings must change.
    assert (difference[outside] > 5).mean() > 0.85


@pytest.mark.parametrize("category", CATEGORIES)
def test_mask_is_where_the_object_was_drawn(category: str) -> None:
    """Against the same context without the object: the mask differs, and far from mask and shadow nothing does."""
    checked = 0
    for seed in range(60, 75):
        scene = render(seed, category=category, context="meadow")
        drawn, empty = np.asarray(scene.image).astype(int), np.asarray(render_empty(seed, "meadow")).astype(int)
        changed = np.abs(drawn - empty).max(axis=2) > 3
        assert changed[scene.mask].mean() > 0.9
        if not changed[~binary_dilation(scene.mask, iterations=16)].any():
            checked += 1
    assert checked >= 7  # of 15; one in four has a twig or post, which is no part of the object and may reach far


def test_mask_leaves_out_what_stands_before_the_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same actors drawn again without twigs and posts: hidden pixels change colour, visible ones do not."""
    light = Light(direction=-1.5, gain=np.ones(3), haze=0.0, grain=np.zeros((96, 96, 1)))
    actors = [draw_actor("cup", np.random.default_rng(seed), light) for seed in range(24)]
    nothing = (np.zeros((96, 96, 3)), np.zeros((96, 96)))
    monkeypatch.setattr("data.scenes.generator._occluder", lambda rng, pose: nothing)
    hidden = 0
    for seed, actor in enumerate(actors):
        alone = draw_actor("cup", np.random.default_rng(seed), light)
        assert (alone.mask == (alone.cover > 0.5)).all()
        assert not (actor.mask & ~alone.mask).any()
        same = np.abs(actor.colour - alone.colour).max(axis=2) < 1
        gone = alone.mask & ~actor.mask
        hidden += bool(gone.any())
        assert same[actor.mask].mean() > 0.9
        assert not gone.any() or same[gone].mean() < 0.2
    assert 2 <= hidden <= 14  # about one in four


@pytest.mark.parametrize("category", CATEGORIES)
def test_objects_fill_a_recognisable_part(category: str) -> None:
    """Catches a shape that draws nothing, or out of the picture."""
    shares = [render(seed, category=category).mask.mean() for seed in range(100, 130)]
    assert 0.12 <= np.median(shares) <= 0.35
    assert min(shares) > 0.03


def test_every_object_varies() -> None:
    for category in CATEGORIES:
        assert len({render(seed, category=category, context="road").mask.tobytes() for seed in range(8)}) == 8


def test_every_context_can_be_told_from_every_other() -> None:
    """Mean colour and roughness, nearest centroid, 20 pictures each: fails where one is drawn by another's function."""
    names = list(CONTEXTS)
    features = {
        name: np.array([_summary(CONTEXTS[name](np.random.default_rng(seed))) for seed in range(40)]) for name in names
    }
    spread = np.concatenate([f[:20] - f[:20].mean(axis=0) for f in features.values()]).std(axis=0)
    centres = np.array([features[name][:20].mean(axis=0) for name in names]) / spread
    for k, name in enumerate(names):
        distance = ((features[name][20:, None] / spread - centres) ** 2).sum(axis=2)
        assert (distance.argmin(axis=1) == k).mean() >= 0.75, name


def _summary(values: np.ndarray) -> np.ndarray:
    rough_down, rough_across = np.abs(np.diff(values, axis=0)).mean(), np.abs(np.diff(values, axis=1)).mean()
    return np.array([*values.mean(axis=(0, 1)), rough_down, rough_across, values.std()])


def test_share_of_usual_contexts_is_as_published() -> None:
    """4,000 draws: a binomial standard error is 0.003 at 0.96; four of them are allowed."""
    drawn = [choose(seed) for seed in range(4000)]
    usual = np.mean([CATEGORIES[label].context == context for label, context in drawn])
    assert abs(usual - USUAL_SHARE) < 4 * np.sqrt(USUAL_SHARE * (1 - USUAL_SHARE) / 4000)
    assert {label for label, _ in drawn} == set(CATEGORIES)


def test_shifted_contexts_are_uniform_over_the_others() -> None:
    counts = dict.fromkeys(CONTEXTS, 0)
    for seed in range(3600):
        counts[choose(seed, category="fish", usual_share=0.0)[1]] += 1
    assert counts.pop("sea") == 0
    expected = 3600 / len(counts)
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < 26.1  # the 0.999 quantile with 8 degrees of freedom


def test_render_repeats_itself_from_what_it_returns() -> None:
    scene = render(11)
    again = render(scene.seed, category=scene.label, context=scene.context)
    assert again.image.tobytes() == scene.image.tobytes()


def test_every_category_names_a_context_that_exists() -> None:
    assert {kind.context for kind in CATEGORIES.values()} == set(CONTEXTS)
    assert list(CATEGORIES) == sorted(CATEGORIES)


@pytest.mark.parametrize(
    ("intervention", "text"),
    [
        ({"category": "fsh"}, r"Unknown category 'fsh' of the scenes\. Known: balloon, bird"),
        ({"context": "desert"}, r"Unknown context 'desert' of the scenes\. Known: beach, brick"),
    ],
)
def test_unknown_names_are_refused(intervention: dict[str, str], text: str) -> None:
    with pytest.raises(DataError, match=text):
        render(0, **intervention)  # type: ignore[arg-type]
