"""Objects compared by identity: what is computed of a frozen object is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

FEW_STUDIES = 64
"""Studies of which something is kept in memory."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Same(Generic[T]):
    """A key for `functools.lru_cache` that equals another of the very same object, which must never change.

    The cache holds the key and with it the object, so that no other object can get its address.
    """

    value: T

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
