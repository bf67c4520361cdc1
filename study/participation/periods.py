"""Conditions within participants: the periods of a participant, one for each condition, and the trials of each.

A participant's place is an order of conditions, a row of a balanced Latin square (`study.plan.orders`). All places of a
permuted block share a seed, which divides the trials of each type into as many sets as there are conditions. From row
to row the sets move on by one condition, so that over a block each image is seen in every condition equally often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from study.bundle import Manifest, Trial
from study.conditions import CONDITIONS
from study.conditions.condition import Condition
from study.participation.allocation import Slot
from study.plan.orders import count_by_type, find_shortage, is_within, list_orders, read_order, write_order
from study.plan.texts import apply_condition_words, describe_condition, fill_placeholders

MARK = "period"
"""Key of a screen under which the period of its trial is: never sent to the page, as it names the condition."""


@dataclass(frozen=True)
class Period:
    """The period of a trial: its number, from 1, its condition, and whether the trial is its first."""

    number: int
    condition: str
    opens: bool

    def mark(self) -> dict[str, Any]:
        """Return what the screen of the trial has of it."""
        return {MARK: asdict(self)}


def share_seeds(slots: Sequence[Slot]) -> list[Slot]:
    """Give all slots of a block the seed of one of them, by which they divide the trials alike."""
    shared: dict[int, int] = {}
    for slot in slots:
        shared[slot.block] = min(shared.get(slot.block, slot.order_seed), slot.order_seed)
    return [replace(slot, order_seed=shared[slot.block]) for slot in slots]


def deal_periods(manifest: Manifest, place: str, seed: int) -> list[tuple[str, list[Trial]]]:
    """Deal the trials of a participant: each condition in their order, with its trials before these are put in order.

    Parameters
    ----------
    place
        The order of conditions, one of `study.plan.orders.list_orders`.
    seed
        That of the permuted block.
    """
    conditions, order = manifest.conditions, read_order(place)
    row = list_orders(conditions).index(order)
    sets = _divide_trials(manifest.trials, len(conditions), np.random.default_rng([seed, *b"sets"]))
    return [(name, sets[(conditions.index(name) + row) % len(conditions)]) for name in order]


def _divide_trials(trials: Sequence[Trial], count: int, rng: np.random.Generator) -> list[list[Trial]]:
    """Divide trials into sets with as many of each type; categories are dealt round; what is left over is left out."""
    sets: list[list[Trial]] = [[] for _ in range(count)]
    kept = count_by_type((trial.trial_type for trial in trials), count)
    for kind, number in kept.items():
        own = [trial for trial in trials if trial.trial_type == kind]
        chosen = [own[i] for i in rng.permutation(len(own))[:number]]
        ranks = {
            name: k for k, name in enumerate(rng.permutation(sorted({trial.category for trial in chosen})).tolist())
        }
        first = int(rng.integers(count))
        for k, trial in enumerate(sorted(chosen, key=lambda trial: ranks[trial.category])):
            sets[(first + k) % count].append(trial)
    return sets


def make_generator(manifest: Manifest, place: str, seed: int) -> np.random.Generator:
    """Make a participant's generator: rows of a square have the same seed, and orders of trials of their own."""
    if not is_within(manifest):
        return np.random.default_rng(seed)
    return np.random.default_rng([seed, list_orders(manifest.conditions).index(read_order(place))])


def read_period(screen: Mapping[str, Any]) -> Period | None:
    """Read the period of a screen; None of an attention check, in practice, and without conditions within."""
    return Period(**screen[MARK]) if MARK in screen else None


def find_condition(place: str, screen: Mapping[str, Any]) -> Condition:
    """Find the condition of a trial: of its period, else the participant's own or first one."""
    period = read_period(screen)
    condition: Condition = CONDITIONS[read_order(place)[0] if period is None else period.condition]
    return condition


def describe_period(
    screen: Mapping[str, Any], manifest: Manifest, texts: Mapping[str, str], *, is_sealed: bool = False
) -> dict[str, Any]:
    """Describe what a page needs to know of a trial, by the keys of its state; nothing without conditions within.

    ``opening``: the page before a period but the first, which says what is shown from there. ``texts``: the legends of
    its condition. ``steps``: a trial of one step says so, by which the page lays out all conditions alike. Of a trial
    whose explanation ``is_sealed`` until its first response, only the opening, which does not say what is shown.
    """
    if not is_within(manifest):
        return {}
    said: dict[str, Any] = {} if is_sealed else {"steps": 1}
    period = read_period(screen)
    if period is None:
        return said
    condition = CONDITIONS[period.condition]
    words = apply_condition_words(dict(texts), condition)
    if not is_sealed:
        said["texts"] = {key: words[key] for key in ("map_legend", "examples_legend")}
    if is_later_opening(screen):
        values = {"number": period.number, "total": len(manifest.conditions)}
        shown = [] if is_sealed else [describe_condition(words, condition) or words["period_none"]]
        said["opening"] = {
            "title": fill_placeholders(words["period_title"], values),
            "text": "\n\n".join([words["period"], *shown]),
        }
    return said


def is_later_opening(screen: Mapping[str, Any]) -> bool:
    """Whether the trial of a screen is the first of a period but the participant's first."""
    return (period := read_period(screen)) is not None and period.opens and period.number > 1


def hide_period(screen: Mapping[str, Any]) -> dict[str, Any]:
    """Return a screen as the page may know it: without the name of its condition."""
    return {key: value for key, value in screen.items() if key != MARK}


def list_period_breaks(screens: Sequence[Mapping[str, Any]], every: int) -> list[int]:
    """List after how many trials there is a break: before each period, and within one every so many trials.

    Within a period as in a study without any: none where less than half of an interval would follow in it. An
    attention check counts to the period of the trial before it.
    """
    opening = [k for k, screen in enumerate(screens) if (period := read_period(screen)) is not None and period.opens]
    breaks = []
    for start, end in zip([0, *opening[1:]], [*opening[1:], len(screens)], strict=True):
        breaks += [start] if start else []
        breaks += [k for k in range(start + every, end, every) if 2 * (end - k) >= every] if every else []
    return breaks


def find_period_faults(manifest: Manifest) -> Iterator[str]:
    """Yield why the trials of a study cannot be divided among its conditions, or an image could be seen twice."""
    if not is_within(manifest):
        return
    counts = Counter[str](trial.trial_type for trial in manifest.trials)
    if shortage := find_shortage(counts, manifest.conditions):
        yield shortage
    images = Counter(trial.assets.target for trial in manifest.trials)
    twice = next((trial.id for trial in manifest.trials if images[trial.assets.target] > 1), None)
    if twice is not None:
        yield (
            f"Trial {twice!r} has the image of another one, which a participant would see in two conditions. Build the "
            "study again."
        )


def choose_preview_order(manifest: Manifest, first: str) -> str:
    """Choose the place of a preview: a condition; where each sees all, an order or the first that begins with one."""
    if first not in manifest.conditions or not is_within(manifest):
        return first
    return write_order(next(order for order in list_orders(manifest.conditions) if order[0] == first))
