"""Blocks of training and test: which trials a participant has in each, drawn and never in both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np

from study.bundle import Manifest, Trial
from study.plan.adaptive import adaptive_of
from study.plan.procedure import Blocks, procedure_of
from study.plan.texts import fill_placeholders

BlockKind = Literal["training", "test"]
MARK = "block"
"""Key of a screen under which the place of a trial in its block is."""


@dataclass(frozen=True)
class Block:
    """A block of one participant.

    Attributes
    ----------
    kind, round
        Training or test, and of which round, from 1.
    trials
        Its trials, before they are put in order.
    before
        Number of training trials before the block.
    """

    kind: BlockKind
    round: int
    trials: tuple[Trial, ...]
    before: int

    def mark(self, place: int) -> dict[str, Any]:
        """Return what the screen of its trial at this place, from 0, says of it."""
        seen = self.before + (place if self.kind == "training" else 0)
        return asdict(BlockPlace(self.kind, self.round, place + 1, seen))


@dataclass(frozen=True)
class BlockPlace:
    """The place of a trial among the blocks: in which one, where in it, and after how many training trials."""

    kind: BlockKind
    round: int
    place: int
    seen: int


def draw_blocks(trials: Sequence[Trial], blocks: Blocks, rng: np.random.Generator) -> Iterator[Block]:
    """Draw the trials of each block, in the order of the blocks; trials beyond their number are left out.

    Trials are shuffled within their types and merged in proportion, so that any stretch has each type as often as the
    study, within one trial where all types are equally frequent. All training blocks are cut from the beginning and
    all test blocks from what follows: each block, all of training and all of test are balanced alike.
    """
    merged = iter(merge_types(trials, rng))
    sizes = [blocks.training] * blocks.rounds + [blocks.test] * blocks.rounds
    parts = [tuple(islice(merged, size)) for size in sizes]
    for number in range(blocks.rounds):
        yield Block("training", number + 1, parts[number], number * blocks.training)
        yield Block("test", number + 1, parts[blocks.rounds + number], (number + 1) * blocks.training)


def merge_types(trials: Sequence[Trial], rng: np.random.Generator) -> list[Trial]:
    """Shuffle trials within their types and merge these in proportion."""
    types = sorted({trial.trial_type for trial in trials})
    ranked: list[tuple[float, int, Trial]] = []
    for rank, kind in zip(rng.permutation(len(types)).tolist(), types, strict=True):
        own = [trial for trial in trials if trial.trial_type == kind]
        ranked += [((k + 0.5) / len(own), rank, own[i]) for k, i in enumerate(rng.permutation(len(own)).tolist())]
    return [trial for _, _, trial in sorted(ranked, key=lambda one: one[:2])]


def read_place(screen: Mapping[str, Any]) -> BlockPlace | None:
    """Read the place of a screen among the blocks; None of an attention check, in practice and without blocks."""
    return BlockPlace(**screen[MARK]) if MARK in screen else None


def opens_block(screen: Mapping[str, Any]) -> bool:
    """Whether the trial of a screen is the first of a block."""
    return (place := read_place(screen)) is not None and place.place == 1


def is_test(screen: Mapping[str, Any]) -> bool:
    """Whether the trial of a screen is a test trial of a study with blocks."""
    return (place := read_place(screen)) is not None and place.kind == "test"


def describe_block(screen: Mapping[str, Any], manifest: Manifest, texts: Mapping[str, str]) -> dict[str, Any]:
    """Describe what a page needs to know of a trial among blocks, by the keys of its state; nothing without blocks.

    ``reveals``: feedback follows the response. ``opening``: the page before the block. ``reservoir``: the training
    images seen so far are offered.
    """
    blocks, place = procedure_of(manifest).blocks, read_place(screen)
    if blocks is None or place is None:
        return {}
    trials = blocks.training if place.kind == "training" else blocks.test
    values = {"round": place.round, "rounds": blocks.rounds, "trials": trials}
    said: dict[str, Any] = {"reveals": place.kind == "training" and blocks.feedback}
    if place.place == 1:
        said["opening"] = {
            "title": fill_placeholders(texts[f"{place.kind}_title"], values),
            "text": "\n\n".join(fill_placeholders(texts[key], values) for key in _list_keys(place.kind, blocks)),
        }
    return said | {"reservoir": place.kind == "test" and blocks.reservoir}


def draft_opening(manifest: Manifest, texts: Mapping[str, str]) -> dict[str, Any]:
    """Describe the page before the first block of a study that has no trials yet; nothing without blocks."""
    first = {MARK: asdict(BlockPlace("training", 1, 1, 0))}
    return {key: said for key, said in describe_block(first, manifest, texts).items() if key == "opening"}


def _list_keys(kind: BlockKind, blocks: Blocks) -> list[str]:
    """List the texts of the page before a block."""
    if kind == "training":
        return ["training", *(["training_feedback"] if blocks.feedback else [])]
    return ["test", *(["test_reservoir"] if blocks.reservoir else [])]


def count_trials(manifest: Manifest) -> int:
    """Count the trials of a participant, without practice and attention checks."""
    blocks, adaptive = procedure_of(manifest).blocks, adaptive_of(manifest)
    if adaptive is not None:
        return adaptive.trials
    return len(manifest.trials) if blocks is None else blocks.total


def find_block_faults(manifest: Manifest) -> Iterator[str]:
    """Yield why the blocks of a study cannot be drawn: too few trials, or an image that could be in both kinds."""
    blocks = procedure_of(manifest).blocks
    if blocks is None:
        return
    if shortage := blocks.find_shortage(len(manifest.trials)):
        yield shortage
    targets = [trial.assets.target for trial in manifest.trials]
    twice = next((trial.id for k, trial in enumerate(manifest.trials) if targets[k] in targets[:k]), None)
    if twice is not None:
        yield f"Trial {twice!r} has the image of another one, which may be in training and test. Build the study again."
