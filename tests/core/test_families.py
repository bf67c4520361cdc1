"""Every heatmap method of Foretell is in one family."""

from __future__ import annotations

from collections import Counter

from core.attribution import METHODS
from core.attribution.families import FAMILIES


def test_every_method_is_in_exactly_one_family() -> None:
    """Catches a new method that no button chooses, and a family with a name that does not exist."""
    named = Counter(name for members in FAMILIES.values() for name in members)
    assert set(named) == set(METHODS) - set(METHODS.plugins)
    assert set(named.values()) == {1}
