"""Attributes on a participant's page: in the order drawn for the participant, the same on all trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from study.attributes.sets import LETTERS
from study.bundle import Trial

ATTRIBUTES = "attributes"
"""Key of a screen under which the attributes are, and the classes at the two ends of the grid."""
ENDS = 2
"""Ends of a grid."""


def list_attributes(trial: Trial) -> dict[str, Any]:
    """List the attributes of a trial, in their frozen order, and the classes at the ends, as a screen has them."""
    if trial.attributes is None:
        return {}
    offered = [{"letter": letter, "name": name} for letter, name in zip(LETTERS, trial.attributes.names, strict=False)]
    return {ATTRIBUTES: {"ends": list(trial.options), "offered": offered}}


def draft_attributes(content: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """List the attributes of a study file that is not built yet, with placeholders where it lists none."""
    table = content.get("attributes")
    listed = table if isinstance(table, Mapping) else {}
    named = [str(one) for key in ("used", "unused") for one in listed.get(key) or ()][: len(LETTERS)] or [*names]
    ends = [str(one) for one in listed.get("classes") or ()]
    offered = [{"letter": letter, "name": name} for letter, name in zip(LETTERS, sorted(named), strict=False)]
    return {ATTRIBUTES: {"ends": ends if len(ends) == ENDS else [*names][:ENDS], "offered": offered}}


def find_position(screen: Mapping[str, Any], letter: str) -> int:
    """Find the place of an attribute in a participant's list, from 1."""
    return 1 + [one["letter"] for one in screen[ATTRIBUTES]["offered"]].index(letter)


def order_attributes(screens: Sequence[dict[str, Any]], order_seed: int) -> list[dict[str, Any]]:
    """Put the attributes of a participant's screens in their order, which their seed decides."""
    offered = next((screen[ATTRIBUTES]["offered"] for screen in screens if ATTRIBUTES in screen), ())
    order = np.random.default_rng([order_seed, *b"attributes"]).permutation(len(offered)).tolist()
    return [_reorder(screen, order) for screen in screens]


def _reorder(screen: dict[str, Any], order: Sequence[int]) -> dict[str, Any]:
    if ATTRIBUTES not in screen:
        return screen
    shown = screen[ATTRIBUTES]
    return {**screen, ATTRIBUTES: {**shown, "offered": [shown["offered"][k] for k in order]}}
