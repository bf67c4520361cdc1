"""``[allocation]``, and the orders of conditions where each participant sees all of them.

Orders are the rows of a balanced Latin square (Williams, 1949, doi:10.1071/CH9490149).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from study.bundle import EVERY_TYPE, TYPE_LABELS, Manifest
from study.conditions import ORDER_MARK
from study.plan.preregistration import NESTED
from study.plan.procedure import AllocationOrder, Section

WITHIN_RANDOM = (
    "(trial_type + saliency + examples || participant) + (saliency + examples || category) + "
    "(saliency + examples || item)"
)
"""Random effects that the tests of explanations need where each participant sees every condition."""
WITHIN_MODELS = {name: f"{fixed} + {WITHIN_RANDOM}" for name, fixed in NESTED.items()}


class Allocation(Section):
    """``[allocation]``: participants per condition, and the order in which conditions are assigned.

    ``blocks``: each next group of participants, one for each condition, gets every condition once, in random order.
    ``shuffled``: all places in one random order, so that groups are equal at the end only.
    With ``within``, each participant sees every condition, one after another, in an order of a balanced Latin square;
    orders are assigned as conditions are else, and ``per_condition`` is the number of participants
    (docs/how-to/compare-conditions-within-participants.md).
    """

    per_condition: Annotated[int, Field(ge=1)] = 40
    order: AllocationOrder = Field(default="blocks", exclude_if=lambda order: order == "blocks")
    within: bool = Field(default=False, exclude_if=lambda within: not within)
    """Omitted from the settings if false: studies frozen before this setting existed keep their hash."""


def is_within(manifest: Manifest) -> bool:
    """Whether each participant of a study sees every condition."""
    return bool(manifest.config.get("allocation", {}).get("within", False))


def list_orders(conditions: Sequence[str]) -> list[tuple[str, ...]]:
    """List the orders of a Williams design: the fewest that are balanced for position and for what came before.

    As many orders as conditions, or twice as many of an odd number: each condition is in each position, and follows
    each other one, equally often.
    """
    count = len(conditions)
    first = [(k + 1) // 2 if k % 2 else -(k // 2) for k in range(count)]
    rows = [[(place + row) % count for place in first] for row in range(count)]
    if count % 2:
        rows += [row[::-1] for row in rows]
    return [tuple(conditions[k] for k in row) for row in rows]


def write_order(conditions: Iterable[str]) -> str:
    """Write an order of conditions as the database and exports have it: ``"none > both"``."""
    return ORDER_MARK.join(conditions)


def read_order(place: str) -> tuple[str, ...]:
    """Read the conditions of a participant's place, in their order: one, or all of a study within participants."""
    return tuple(place.split(ORDER_MARK))


def list_places(manifest: Manifest) -> tuple[str, ...]:
    """List what participants are assigned to: a condition, or an order of all conditions."""
    if not is_within(manifest):
        return tuple(manifest.conditions)
    return tuple(write_order(order) for order in list_orders(manifest.conditions))


def count_squares(manifest: Manifest, per_condition: int) -> int:
    """Count the permuted blocks of places that at least so many participants per condition need.

    Within participants a block has each order once, and a started one is completed: only then is everything balanced.
    """
    return -(-per_condition // len(list_places(manifest))) if is_within(manifest) else per_condition


def count_by_type(kinds: Iterable[str], conditions: int) -> dict[str, int]:
    """Count the trials of each type that a participant has, as many in each condition."""
    counts = Counter(kinds)
    return {kind: counts[kind] // conditions * conditions for kind in EVERY_TYPE if counts[kind]}


def count_within(manifest: Manifest) -> int:
    """Count the trials of a participant of a study within participants."""
    return sum(count_by_type((trial.trial_type for trial in manifest.trials), len(manifest.conditions)).values())


def find_shortage(counts: Mapping[str, int], conditions: Sequence[str]) -> str:
    """Say why trials (their number by type) cannot be divided among conditions, with the remedy; empty if they can."""
    least = len(conditions)
    if least == 1:
        return (
            f"allocation.within: the study has one condition, {conditions[0]!r}, and nothing to compare within "
            "participants. Name at least two conditions, or leave within out."
        )
    short = next((kind for kind, count in counts.items() if count < least), None)
    if short is not None:
        return (
            f"allocation.within: {least} conditions need at least {least} trials of each type, and there "
            f"{'is' if counts[short] == 1 else 'are'} {counts[short]} with the {TYPE_LABELS[short]}. Raise "
            "trials.categories or trials.per_type, or name fewer conditions."
        )
    return ""


def describe_division(counts: Mapping[str, int], conditions: Sequence[str]) -> str:
    """Say which trials each participant has where a type cannot be divided evenly; empty where all are used."""
    least = len(conditions)
    rest = {kind: count for kind, count in counts.items() if count % least}
    if not rest:
        return ""
    each = ", ".join(
        f"{count // least * least} of {count} with the {TYPE_LABELS[kind]}" for kind, count in rest.items()
    )
    return (
        f"{least} conditions do not divide the trials of each type evenly. Each participant has {each}, drawn at "
        "random for each group of participants; a multiple would use all."
    )


def check_within(conditions: Sequence[str], per_type: Mapping[str, int], *, has_blocks: bool) -> None:
    """Refuse conditions within participants where they cannot be; ``per_type`` is the number of trials of each type.

    Raises
    ------
    ValueError
        With the setting and the remedy.
    """
    if has_blocks:
        raise ValueError(
            "allocation.within: training in one condition would change the test of the next. Remove the section "
            "blocks, or leave within out."
        )
    if shortage := find_shortage(per_type, conditions):
        raise ValueError(shortage)


def plan_within(content: Any) -> Any:
    """Plan slopes of explanations by participant in a study file where each sees all, unless it plans its models."""
    if not isinstance(content, dict):
        return content
    allocation, plan = content.get("allocation"), content.get("analysis", {})
    if isinstance(allocation, dict) and allocation.get("within") is True and isinstance(plan, dict):
        return {**content, "analysis": {"models": WITHIN_MODELS, **plan}}
    return content
