"""do(context) and do(object): one thing changes, everything else stays."""

from __future__ import annotations

import numpy as np

from data.scenes.contexts import CONTEXTS
from data.scenes.interventions import other_contexts, other_objects
from data.scenes.shapes import CATEGORIES
from data.scenes.splits import picture


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
