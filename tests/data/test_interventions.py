"""do(context), do(object) and do(colour): one thing changes, everything else stays."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

from data.errors import DataError
from data.scenes.contexts import CONTEXTS
from data.scenes.interventions import HUES, other_contexts, other_objects, recolour_object
from data.scenes.shapes import CATEGORIES
from data.scenes.splits import picture
from data.sets import scenes


def test_other_contexts_keep_the_object_and_other_objects_keep_the_context() -> None:
    scene = picture("standard", 0, 3)
    contexts, objects = other_contexts(scene), other_objects(scene)
    assert [other.context for other in contexts] == [name for name in CONTEXTS if name != scene.context]
    assert [other.label for other in objects] == [name for name in CATEGORIES if name != scene.label]
    assert all(other.label == scene.label and (other.mask == scene.mask).all() for other in contexts)
    assert all(other.context == scene.context for other in objects)
    pixels = np.asarray(scene.image).astype(int)
    for other in contexts:
        differs = np.abs(np.asarray(other.image).astype(int) - pixels).sum(2)
        # The object's rim is mixed with what is behind it.
        assert np.median(differs[scene.mask]) == 0
        assert np.median(differs[~scene.mask]) > 10
    assert len({other.image.tobytes() for other in [scene, *contexts, *objects]}) == len(CONTEXTS) + len(CATEGORIES) - 1


def test_a_colour_reaches_the_object_alone_and_leaves_its_lightness() -> None:
    """By colorsys, pixel by pixel: the hue asked for, the value it had."""
    scene = picture("standard", 0, 12)
    before, after = (np.asarray(image) for image in (scene.image, recolour_object(scene, "blue")))
    assert (before[~scene.mask] == after[~scene.mask]).all()
    hues = []
    for old, new in zip(before[scene.mask] / 255, after[scene.mask] / 255, strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*new)
        assert abs(value - max(old)) < 0.02
        assert value < 0.1 or saturation > 0.45
        hues += [hue] if value > 0.2 else []
    assert np.abs(np.array(hues) - HUES["blue"] / 256).max() < 0.03
    with pytest.raises(DataError, match="Unknown colour 'mauve'"):
        recolour_object(scene, "mauve")


def test_the_factors_of_a_set_are_these_interventions() -> None:
    images = scenes.load(split="adversarial", size=20)
    scene = picture("adversarial", 0, 4)
    context, thing, colour = (images.factors[name] for name in ("context", "object", "colour"))
    assert context.known is not None
    assert context.known[4] == scene.context
    assert thing.known is not None
    assert thing.known[4] == scene.label
    assert context.do(4, scene.context).tobytes() == scene.image.tobytes()
    others = {name: context.do(4, name).tobytes() for name in CONTEXTS if name != scene.context}
    assert list(others.values()) == [other.image.tobytes() for other in other_contexts(scene)]
    assert thing.do(4, other_objects(scene)[2].label).tobytes() == other_objects(scene)[2].image.tobytes()
    assert colour.do(4, "red").tobytes() == recolour_object(scene, "red").tobytes()
