"""Simulated participants, who take part through the same service as real ones.

They have their own slots, are marked ``mode = 'sim'``, and are excluded from every export that does not ask for them.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit, logit

from core.errors import ForetellError
from core.types import Progress, silent
from study.attributes.sets import write_set
from study.attributes.simulated import draw_set
from study.names.simulated import draw_text
from study.participation.payloads import CheckResponses, QuestionnaireResponses, TrialResponse
from study.participation.screens import list_samples
from study.places.simulated import draw_mark
from study.plan.simulated_participants import SimulatedParticipant, sample_mixture
from study.service import Service, SimulatedTrial
from study.store.rows import Side
from study.tasks.scale import make_even_scale
from study.tasks.theory import SWITCH, ShownExplanations

_QUESTIONNAIRE = 2**31  # no trial has this index


def simulate(
    service: Service,
    study: str,
    participants: int,
    mixture: Mapping[str, float],
    seed: int,
    progress: Progress = silent,
    *,
    switch: float = SWITCH,
) -> int:
    """Run simulated participants through a study, from consent to debriefing.

    Repeating a call changes nothing: the mixture, the seed and a number identify each participant, who resumes after
    an interruption and responds to every trial from their own random stream. A larger `participants` adds
    participants; another seed, mixture or `switch` adds others.

    Parameters
    ----------
    service, study
        The service, and the name of the study, open or not.
    participants
        Number of participants.
    mixture
        Weight of each theory, see `study.plan.simulated_participants`.
    seed
        Random seed of the participants and their responses.
    progress
        Called after each participant; raise from it to stop.
    switch
        In tasks of two steps, how often they follow an AI that contradicts them where nothing is explained, in [0, 1].

    Returns
    -------
    int
        Number of new responses.
    """
    if participants < 1:
        raise ForetellError(f"participants is {participants}. Simulate at least 1.")
    kind = ",".join(f"{name}={weight:g}" for name, weight in sorted(mixture.items()))
    if switch != SWITCH:
        kind += f";switch={switch:g}"
    new = 0
    for number in range(participants):
        rng = np.random.default_rng([seed, number])
        (person,) = sample_mixture(dict(sorted(mixture.items())), 1, rng, switch=switch)
        token = service.participant.begin(study, mode="sim", participant=f"{kind}/{seed}/{number}")
        new += _take_part(service, token, person, (seed, number))
        progress(number + 1, participants, f"simulated participants in {study}")
    return new


def _take_part(service: Service, token: str, person: SimulatedParticipant, stream: tuple[int, int]) -> int:
    state = _enter(service, token)
    responses = 0
    while state["stage"] in ("practice", "main", "between"):
        if state["stage"] == "between":  # simulated participants do not wait
            state = service.participant.start_sitting(token, state["number"])
            continue
        state = _respond(service, token, person, state, stream)
        responses += 1
    if state["stage"] == "questionnaire":
        state = service.participant.fill(token, _fill_questionnaire(state["items"], stream))
    if state["stage"] == "debrief":
        service.participant.finish(token)
    return responses


def _enter(service: Service, token: str) -> dict[str, Any]:
    """Take a simulated participant from consent to the first trial, with a passed comprehension check."""
    state = service.participant.state(token)
    if state["stage"] == "consent":
        state = service.participant.consent(token, True)
    if state["stage"] == "instructions":
        state = service.participant.ready(token)
    if state["stage"] == "check":
        questions = service.participant.load_simulated_procedure(token).check.questions
        right = [question.options.index(question.answer) for question in questions]
        state = service.participant.check(token, CheckResponses(attempt=state["attempt"], answers=right))
    return service.participant.ready(token, "example") if state["stage"] == "example" else state


def _fill_questionnaire(items: list[dict[str, Any]], stream: tuple[int, int]) -> QuestionnaireResponses:
    """Respond to a questionnaire at random, with a fixed word for texts."""
    rng = np.random.default_rng([*stream, _QUESTIONNAIRE])
    responses: dict[str, str | int] = {}
    for item in items:
        if item["kind"] == "scale":
            responses[item["id"]] = int(rng.integers(1, item["points"] + 1))
        else:
            responses[item["id"]] = str(rng.choice(item["options"])) if item["kind"] == "choice" else "simulated"
    return QuestionnaireResponses(answers=responses)


def _respond(
    service: Service, token: str, person: SimulatedParticipant, state: dict[str, Any], stream: tuple[int, int]
) -> dict[str, Any]:
    """Respond to a step of a trial; the randomness depends on the participant, trial and step alone.

    In a study that chooses trials by responses, each SD of difficulty takes one from the log-odds of a right response.
    """
    index, step = state["trial"]["index"], state["trial"].get("step", 1)
    known = service.participant.load_simulated_trial(token, index)
    # + 1: a trailing 0 would be the participant's own stream
    rng = np.random.default_rng([*stream, index + 1, *([step] if step > 1 else [])])
    if known.place is not None and known.place.kind == "test":
        learned = ShownExplanations(known.shows_heatmaps, known.shows_examples)
        p = person.p_test(known.task, known.trial, learned, known.place.seen)
    else:
        has_examples = bool(state["trial"]["target"] if known.task.of_units else list_samples(state["trial"]))
        shown = ShownExplanations(known.shows_heatmaps, has_examples)
        p = person.p_step(known.task, known.trial, shown, known.first_right)
    if known.trial.difficulty is not None:
        p = float(expit(logit(p) - known.trial.difficulty.score))
    drawn, sure = rng.random(), abs(2 * p - 1)
    place = draw_place(known, drawn < p, rng)
    if known.task.of_attributes:
        place = write_set(draw_set(known.trial, lambda one: person.p_right(known.task, one, shown), rng))
    response = TrialResponse(
        trial_index=index,
        step=step,
        attempt_id=str(uuid.uuid4()),
        side=known.right[0] if known.task.is_confirmed else choose_side(known, p, drawn),
        place=place,
        text=write_text(known, drawn < p, rng),
        input="sim",
        rt_ms=person.response_time.draw(rng),
        confidence=sure if state["confidence"] else None,
    )
    ack = service.participant.record(token, response)
    if ack.code not in (200, 201):
        raise ForetellError(f"The simulated response to trial {index} was refused ({ack.message}). Simulate again.")
    return ack.state


def draw_place(known: SimulatedTrial, right: bool, rng: np.random.Generator) -> str | None:
    """Draw a place on the image, correct or not, by `study.places.simulated`; None where an option is asked for."""
    kind, region = known.task.place, known.trial.region
    return None if kind is None or region is None else draw_mark(kind, region, right, rng).text


def write_text(known: SimulatedTrial, right: bool, rng: np.random.Generator) -> str | None:
    """Write what the unit responds to, or something else, by `study.names.simulated`; None in other tasks."""
    unit = known.trial.unit
    return draw_text(unit.name, right, rng) if known.task.is_written and unit is not None else None


def choose_side(known: SimulatedTrial, p: float, drawn: float) -> Side:
    """Return the button that is pressed: a right one with probability ``p``, by ``drawn``, uniform in [0, 1).

    Wrong ones of several classes are equally likely where the AI is right. Where it errs, those that are not the true
    class are as likely as its prediction: nothing that is explained tells one from another
    (`study.plan.simulated_participants`).
    The levels of a scale follow a cumulative logit model with thresholds one apart: each log-odds by which the right
    side, or the wrong one, is preferred is a level further out. Where no response is right or wrong, ``p`` is the
    probability that the latent rating is above 0 (`study.tasks.scale`).
    """
    if not known.right:
        level = make_even_scale(len(known.wrong)).choose(np.array(p), np.array(drawn))
        return known.wrong[int(level) - 1]
    sides = known.right if drawn < p else known.wrong
    if len(sides) == 1:
        return sides[0]
    if known.task.has_several:
        errs = known.trial.target != known.trial.truth
        share = p if errs else (1.0 - p) / len(sides)
        return sides[min(int((drawn - p) / share), len(sides) - 1)]
    strength = abs(float(logit(p)) - float(logit(drawn)))
    return sides[int(min(strength, len(sides) - 1))]
