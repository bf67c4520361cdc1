"""Assignment to conditions and sides: a pure function of the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from study.plan.procedure import AllocationOrder
from study.store.rows import SessionRow, SlotRow


@dataclass(frozen=True)
class Place:
    """What a participant is assigned to.

    Attributes
    ----------
    condition
        Name of the condition.
    side_flip
        1 where option a is on the right.
    order_seed
        Seed of this participant's order of trials.
    """

    condition: str
    side_flip: int
    order_seed: int


@dataclass(frozen=True)
class Slot(Place):
    """One place in the study, with the index of its permuted block, from 0; every block holds each condition once."""

    block: int


def place_of(row: SessionRow | SlotRow) -> Place | None:
    """Return the place of a participant or slot; None before the allocation."""
    condition, side_flip, order_seed = row["condition"], row["side_flip"], row["order_seed"]
    if condition is None or side_flip is None or order_seed is None:
        return None
    return Place(condition, side_flip, order_seed)


def blocks(conditions: Sequence[str], per_condition: int, seed: int) -> list[Slot]:
    """Return `per_condition` permuted blocks, each with every condition once.

    Sides are drawn in each even block and reversed condition by condition in the next, so that within every
    condition both sides are used equally often after each pair of blocks. More blocks of the same seed begin
    with the same slots: a study can be enlarged without touching what was allocated.
    """
    slots: list[Slot] = []
    for block in range(per_condition):
        rng = np.random.default_rng([seed, block])
        order = rng.permutation(len(conditions))
        seeds = rng.integers(0, 2**31, len(conditions))
        flips = np.random.default_rng([seed, block // 2, 1]).integers(0, 2, len(conditions)) ^ (block % 2)
        slots += [Slot(conditions[c], int(flips[c]), int(s), block) for c, s in zip(order, seeds, strict=True)]
    return slots


def list_new_slots(
    conditions: Sequence[str], per_condition: int, seed: int, known: int, order: AllocationOrder
) -> list[Slot]:
    """Return the slots that a study with `known` blocks lacks, in the order in which participants get them.

    Those of `blocks`; if ``shuffled``, all of the new ones in one random order: groups are equal when every place is
    taken, and until then nobody who knows the earlier assignments can tell the next.
    """
    new = [slot for slot in blocks(conditions, per_condition, seed) if slot.block >= known]
    if order == "blocks":
        return new
    return [new[i] for i in np.random.default_rng([seed, known, 2]).permutation(len(new))]


def mode_seed(seed: int, mode: str) -> int:
    """Return the seed of a mode's own stream of slots, so that simulated participants never use up live ones."""
    return int(np.random.SeedSequence([seed, *mode.encode()]).generate_state(1)[0])
