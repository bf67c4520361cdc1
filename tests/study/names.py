"""What tests of texts do in the name of participants and raters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from study.service import Service
from tests.study.participants import answer, to_trials


def write_names(service: Service, study: str, texts: Sequence[str]) -> str:
    """Take part with these texts, one for each trial with practice; return the participant's token."""
    token = service.participant.begin(study)
    state, given = to_trials(service, token), iter_all(texts)
    while state["stage"] in ("practice", "main"):
        ack = service.participant.record(token, answer(state["trial"]["index"], "1", text=next(given)))
        assert ack.code == 201, ack.message
        state = ack.state
    if state["stage"] == "debrief":
        service.participant.finish(token)
    return token


def iter_all(texts: Sequence[str]) -> Iterator[str]:
    """Yield the texts, and then the last one again and again."""
    yield from texts
    while True:
        yield texts[-1]
