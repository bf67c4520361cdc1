"""One participant's plan: every trial in order, and exactly what is where on the screen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from study.bundle import LETTERS, Manifest, Trial
from study.conditions import CONDITIONS
from study.conditions.condition import Condition
from study.participation.attributes import list_attributes, order_attributes
from study.participation.blocks import MARK, draw_blocks
from study.participation.catch import NO_IMAGES, catch_trials, draw_catch_positions
from study.participation.order import shuffle_trials
from study.participation.periods import Period, deal_periods, make_generator
from study.participation.sittings.division import divide_trials, mark_place
from study.plan.orders import is_within, read_order
from study.plan.procedure import procedure_of
from study.plan.sittings import count_sittings
from study.plan.texts import word_task
from study.store.rows import Choice
from study.tasks.task import Task, WordedTask

Phase = Literal["practice", "main", "catch"]
PLACE = "place"
"""Key of a screen under which the kind of mark is, where the response is a place."""
ORDER_MARK = " | "
"""Between the classes of an exported order."""
UNEXPLAINED = "none"
"""The condition whose screens all participants have in test trials of a study with blocks."""
_OTHER: dict[Choice, Choice] = {"a": "b", "b": "a"}


@dataclass(frozen=True)
class PresentedTrial:
    """A trial as one participant will see it.

    Attributes
    ----------
    phase, trial
        Practice, main or catch; the trial of the bundle, or an attention check.
    left_is
        Which option is on the left, where there are two or a scale; of several classes, the screen has the order.
    screen
        What the page is told: assets and names by place, ``label`` where the task shows it, and in place of ``left``
        and ``right`` the ``options`` of more than two, from left to right, several classes each with its ``letter`` in
        the bundle's order; the ``attributes`` to choose from, in the participant's order; its ``block``, if any.
        Nothing here depends on which option is right. A trial of two steps begins with what `hide_explanation` leaves
        of it. Of its ``period`` and its ``sitting``, if any, the page is told nothing.
    shown_sha256
        SHA-256 over what is shown: see `hash_screen`.
    """

    phase: Phase
    trial: Trial
    left_is: Choice
    screen: dict[str, Any]
    shown_sha256: str


def plan(manifest: Manifest, place: str, side_flip: int, order_seed: int) -> list[PresentedTrial]:
    """Lay out practice trials in the bundle's order, then main trials in this participant's, with attention checks.

    ``place`` is the participant's condition, or their order of all; practice is then in the first.
    """
    condition: Condition = CONDITIONS[read_order(place)[0]]
    worded = word_task(manifest)
    left_is = choose_left(worded.task, side_flip)
    rng = make_generator(manifest, place, order_seed)
    practice = [lay_out_trial("practice", trial, condition, left_is, worded) for trial in manifest.practice]
    if is_within(manifest):
        periods = deal_periods(manifest, place, order_seed)
        main = list(_lay_out_periods(periods, left_is, worded, rng, count_sittings(manifest)))
    else:
        main = list(_lay_out_main(manifest, condition, left_is, worded, rng))
    for before, check in lay_out_catches(manifest, len(main), condition, left_is, worded, rng):
        main.insert(before, check)
    laid = practice + main
    screens = order_attributes([one.screen for one in laid], order_seed)
    return [replace(one, screen=screen) for one, screen in zip(laid, screens, strict=True)]


def lay_out_catches(
    manifest: Manifest, count: int, condition: Condition, left_is: Choice, worded: WordedTask, rng: np.random.Generator
) -> Iterator[tuple[int, PresentedTrial]]:
    """Lay out the attention checks among so many main trials, the last first, each with the main trial it precedes."""
    catches = catch_trials(manifest)
    for before, trial in reversed(list(zip(draw_catch_positions(count, len(catches), rng), catches, strict=True))):
        side: Choice = "a" if rng.random() < 0.5 else "b"
        if worded.task.is_scale:
            side = left_is
        elif worded.buttons is not None:  # the same side as on all other trials
            side = left_is if trial.options == worded.buttons else _OTHER[left_is]
        letters = draw_letters(worded.task, rng)
        yield before, lay_out_trial("catch", trial, condition, side, worded, letters)


def choose_left(task: Task, side_flip: int | None) -> Choice:
    """Return the option on the left: by the participant's sides; of a unit, the image on the left, for all of them."""
    return "b" if side_flip and not task.of_units else "a"


def _lay_out_main(
    manifest: Manifest, condition: Condition, left_is: Choice, worded: WordedTask, rng: np.random.Generator
) -> Iterator[PresentedTrial]:
    """Lay out the main trials: all of them in one order, sitting after sitting, or block after block."""
    blocks = procedure_of(manifest).blocks
    if blocks is None:
        count = count_sittings(manifest)
        parts = [manifest.trials] if count == 1 else divide_trials(manifest.trials, count, rng)
        for number, part in enumerate(parts, 1):
            for place, trial in enumerate(order_trials(part, worded.task, left_is, rng)):
                laid = lay_out_trial("main", trial, condition, left_is, worded, draw_letters(worded.task, rng))
                yield replace(laid, screen={**laid.screen, **mark_place(number, count, opens=place == 0)})
        return
    for block in [*draw_blocks(manifest.trials, blocks, rng)]:
        shown: Condition = condition if block.kind == "training" else CONDITIONS[UNEXPLAINED]
        for place, trial in enumerate(order_trials(block.trials, worded.task, left_is, rng)):
            laid = lay_out_trial("main", trial, shown, left_is, worded, draw_letters(worded.task, rng))
            yield replace(laid, screen={**laid.screen, MARK: block.mark(place)})


def _lay_out_periods(
    periods: Sequence[tuple[str, Sequence[Trial]]],
    left_is: Choice,
    worded: WordedTask,
    rng: np.random.Generator,
    sittings: int,
) -> Iterator[PresentedTrial]:
    """Lay out the main trials period after period, each in its condition, as many periods in each sitting."""
    each = len(periods) // sittings
    for number, (name, trials) in enumerate(periods, 1):
        sitting, before = divmod(number - 1, each)
        for place, trial in enumerate(order_trials(trials, worded.task, left_is, rng)):
            laid = lay_out_trial("main", trial, CONDITIONS[name], left_is, worded, draw_letters(worded.task, rng))
            marks = Period(number, name, place == 0).mark()
            marks |= mark_place(sitting + 1, sittings, opens=place == before == 0)
            yield replace(laid, screen={**laid.screen, **marks})


def order_trials(trials: Sequence[Trial], task: Task, left_is: Choice, rng: np.random.Generator) -> list[Trial]:
    """Draw the order of trials.

    It is free with several classes, where long runs of one place are rare, without sides, and where no option is right.
    """
    if not has_sides(task):
        return [trials[i] for i in rng.permutation(len(trials))]
    first = task.order(left_is)[0]
    return [trials[i] for i in shuffle_trials([first in task.find_right(trial) for trial in trials], rng)]


def has_sides(task: Task) -> bool:
    """Whether one of two sides, or halves of a scale, is right on each trial."""
    return task.is_scored and not (task.has_several or task.is_confirmed)


def draw_letters(task: Task, rng: np.random.Generator) -> str:
    """Draw the order of several classes on a trial; empty where the participant's sides decide."""
    return "".join(rng.permutation(list(LETTERS[: task.options]))) if task.has_several else ""


def lay_out_trial(
    phase: Phase, trial: Trial, condition: Condition, left_is: Choice, worded: WordedTask, letters: str = ""
) -> PresentedTrial:
    """Lay out one trial for one condition, one task, and one choice of sides or of the options' order, by letters."""
    is_catch = trial.assets == NO_IMAGES
    names = trial.options if is_catch and not worded.task.is_scale else worded.name_options(trial)
    letters = letters or LETTERS[: len(names)][:: 1 if left_is == "a" else -1]
    shown = None if is_catch else worded.task.arrange(trial, condition)
    examples: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    if shown is not None and not (worded.task.hides_foil or worded.task.is_written or worded.task.of_attributes):
        examples = {name: shown.examples[option] for name, option in zip(names, trial.options, strict=True)}
    placed = {letter: names[LETTERS.index(letter)] for letter in letters}
    options: list[dict[str, Any]] = [
        {"name": name, "samples": list(examples[name]), **({"letter": letter} if worded.task.has_several else {})}
        for letter, name in placed.items()
    ]
    screen: dict[str, Any] = {
        "target": shown and shown.target,
        "map": shown and shown.target_map,
        **place_options(options),
        **({} if worded.task.place is None else {PLACE: worded.task.place}),
        **list_attributes(trial),
    }
    if shown is None:
        screen["asked"] = trial.target
    elif (text := worded.write_label(trial.target)) is not None:
        samples = shown.examples[trial.target] if worded.task.hides_foil else ()
        screen["label"] = {"name": trial.target, "text": text, "samples": list(samples)}
    return PresentedTrial(phase, trial, left_is, screen, hash_screen(screen))


def place_options(options: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the options, from left to right, as a screen has them: two by their sides, else as a list."""
    return {"options": list(options)} if len(options) != 2 else dict(zip(("left", "right"), options, strict=True))


def list_options(screen: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """List the options of a screen, from left to right, by their buttons; the only one of a place confirms it."""
    if "options" in screen:
        return {str(number): option for number, option in enumerate(screen["options"], 1)}
    return {side: screen[side] for side in ("left", "right")}


def find_order(screen: Mapping[str, Any]) -> str | None:
    """Find the order of several classes on a screen, from left to right; None of two options and of a scale."""
    options = screen.get("options", [{}])
    return ORDER_MARK.join(option["name"] for option in options) if "letter" in options[0] else None


def find_letters(planned: Mapping[str, Any]) -> dict[str, str]:
    """Find the letter of each button of a planned trial; of an attention check on a scale, a is the requested one."""
    options = list_options(screen := json.loads(planned["screen_json"]))
    if all("letter" in option for option in options.values()):
        return {side: option["letter"] for side, option in options.items()}
    if "options" in screen and planned["phase"] == "catch":
        return {side: "a" if option["name"] == screen["asked"] else "b" for side, option in options.items()}
    letters = LETTERS[: len(options)]
    return dict(zip(options, letters if planned["left_is"] == "a" else letters[::-1], strict=True))


def count_steps(task: Task, phase: Phase) -> int:
    """Count the responses to a trial: an attention check has one."""
    return 1 if phase == "catch" else task.steps


def hide_explanation(screen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the screen of a first step: the image and the two names, the same in every condition."""
    names = {side: {"name": screen[side]["name"], "samples": []} for side in ("left", "right")}
    return {"target": screen["target"], "map": None, **names}


def list_samples(screen: Mapping[str, Any]) -> list[str]:
    """List the images with the options of a screen, from left to right, and those of the AI's label."""
    places = [*list_options(screen).values(), *([screen["label"]] if "label" in screen else [])]
    return [sha256 for place in places for sha256 in place["samples"]]


def assets(screen: Mapping[str, Any]) -> list[str]:
    """List the assets of a screen in the order target, heatmap, options from left to right, of the AI's label."""
    targets = [sha256 for sha256 in (screen["target"], screen["map"]) if sha256]
    return [*targets, *list_samples(screen)]


def hash_screen(screen: Mapping[str, Any]) -> str:
    """Hash a screen: SHA-256 of its assets' SHA-256 in order, one a line, and of the AI's label where it is shown.

    That of an attention check is of its named option.
    """
    lines = assets(screen) or [f"asked: {screen['asked']}"]
    if "label" in screen:
        lines.append(f"label: {screen['label']['name']}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
