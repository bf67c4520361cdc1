"""Simulated participants, who take part through the same service as real ones.

They have their own slots, are marked ``mode = 'sim'``, and are excluded from every export that does not ask for them.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from core.errors import ForetellError
from core.types import Progress, silent
from study.participation.payloads import CheckResponses, QuestionnaireResponses, TrialResponse
from study.participation.screens import list_samples
from study.plan.simulated_participants import SimulatedParticipant, sample_mixture
from study.service import Service
from study.tasks.theory import ShownExplanations

_QUESTIONNAIRE = 2**31  # no trial has this index
_OTHER: dict[Literal["left", "right"], Literal["left", "right"]] = {"left": "right", "right": "left"}


def simulate(
    service: Service,
    study: str,
    participants: int,
    mixture: Mapping[str, float],
    seed: int,
    progress: Progress = silent,
) -> int:
    """Run simulated participants through a study, from consent to debriefing.

    Repeating a call changes nothing: the mixture, the seed and a number identify each participant, who resumes after
    an interruption and responds to every trial from their own random stream. A larger `participants` adds
    participants; another seed or mixture adds others.

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

    Returns
    -------
    int
        Number of new responses.
    """
    if participants < 1:
        raise ForetellError(f"participants is {participants}. Simulate at least 1.")
    kind = ",".join(f"{name}={weight:g}" for name, weight in sorted(mixture.items()))
    new = 0
    for number in range(participants):
        (person,) = sample_mixture(dict(sorted(mixture.items())), 1, np.random.default_rng([seed, number]))
        token = service.participant.begin(study, mode="sim", participant=f"{kind}/{seed}/{number}")
        new += _take_part(service, token, person, (seed, number))
        progress(number + 1, participants, f"simulated participants in {study}")
    return new


def _take_part(service: Service, token: str, person: SimulatedParticipant, stream: tuple[int, int]) -> int:
    state = _enter(service, token)
    responses = 0
    while state["stage"] in ("practice", "main"):
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
    """Respond to one trial; the randomness depends on the participant and the trial alone, not on earlier trials."""
    index = state["trial"]["index"]
    known = service.participant.load_simulated_trial(token, index)
    rng = np.random.default_rng([*stream, index + 1])  # + 1: a trailing 0 would be the participant's own stream
    shown = ShownExplanations(known.shows_saliency, bool(list_samples(state["trial"])))
    p = person.p_right(known.task, known.trial, shown)
    is_right, sure = rng.random() < p, abs(2 * p - 1)
    response = TrialResponse(
        trial_index=index,
        attempt_id=str(uuid.uuid4()),
        side=known.right_side if is_right else _OTHER[known.right_side],
        input="sim",
        rt_ms=person.response_time.draw(rng),
        confidence=sure if state["confidence"] else None,
    )
    ack = service.participant.record(token, response)
    if ack.code not in (200, 201):
        raise ForetellError(f"The simulated response to trial {index} was refused ({ack.message}). Simulate again.")
    return ack.state
