"""Requests of the participant's page: checked as a whole before they reach the database."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from study.bundle import canonical
from study.names.texts import MOST_SENT
from study.places.marks import MOST_CHARACTERS
from study.store.rows import Side

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{8,64}$")]
Duration = Annotated[float, Field(ge=0, le=86_400_000, allow_inf_nan=False)]
"""At most a day: no participation lasts longer."""
Clock = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
"""Time of a page's own clock, which begins when the page is loaded: at most three years."""
Since1970 = Annotated[float, Field(ge=0, le=1e13, allow_inf_nan=False)]
ROUNDING_MS = 1.0

MOST_PAYLOAD = 600
MOST_NUMBER = 2**53
"""The largest whole number that every reader of JSON understands alike."""
MOST_TRIALS = 100_000
MOST_STEPS = 100


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TrialResponse(_Sent):
    """One response.

    Attributes
    ----------
    trial_index
        Index in the participant's plan, from 0.
    step
        Which of the trial's responses it is, from 1.
    attempt_id
        Made by the page once per response: a repeated id is a retry, another one a second response.
    side, input
        Which button, a side or the number of a level from the left, and how it was pressed.
    rt_ms
        Response time: `event_ms` - `onset_ms`.
    onset_ms, event_ms, handler_ms, time_origin_ms
        Clock of the browser: second frame after the image was ready, the event's own time stamp, when the
        handler ran; and the origin of that clock in ms since 1970.
    frame_hz, dropped_frames, clock_ms
        Refresh rate as measured by the page, frames that came late between onset and response, and the smallest step
        of the browser's clock.
    place
        Where the study asks for a place, what was marked, as `study.places.marks` writes it.
    text
        Where the study asks for a text, what was written, without the spaces around it.
    confidence
        The participant's confidence, from 0 (guessed) to 1 (certain), where the study asks.
    n_exposures, resumed
        How often the trial was shown to this participant, and whether the page was reloaded in between.
    blur_ms
        How long the page was out of sight between onset and response.
    """

    trial_index: int = Field(ge=0, le=MOST_TRIALS)
    step: int = Field(default=1, ge=1, le=MOST_STEPS)
    attempt_id: Identifier
    side: Side
    input: Literal["key", "mouse", "touch", "sim"]
    rt_ms: Duration
    onset_ms: Clock | None = None
    event_ms: Clock | None = None
    handler_ms: Clock | None = None
    time_origin_ms: Since1970 | None = None
    frame_hz: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)] | None = None
    n_exposures: int = Field(default=1, ge=1, le=10_000)
    resumed: bool = False
    blur_ms: Duration = 0.0
    dropped_frames: int | None = Field(default=None, ge=0, le=1_000_000)
    clock_ms: Duration | None = None
    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    place: Annotated[str, Field(max_length=MOST_CHARACTERS)] | None = None
    text: Annotated[str, Field(max_length=MOST_SENT)] | None = None

    @field_validator("text")
    @classmethod
    def _trim(cls, text: str | None) -> str | None:
        return None if text is None else text.strip()

    @model_validator(mode="after")
    def _agrees(self) -> TrialResponse:
        if self.onset_ms is None or self.event_ms is None:
            return self
        if abs(self.event_ms - self.onset_ms - self.rt_ms) > ROUNDING_MS:
            raise ValueError("rt_ms is not event_ms - onset_ms")
        return self


class ClientEvent(_Sent):
    """Something the page noticed: blur, focus, resize, offline, an early key, ..."""

    event_id: Identifier
    kind: str = Field(pattern=r"^[a-z_]{1,40}$")
    trial_index: int | None = Field(default=None, ge=0, le=MOST_TRIALS)
    t_client_ms: Clock | None = None
    payload: dict[str, Any] = Field(default_factory=dict)

    @field_validator("payload")
    @classmethod
    def _small(cls, payload: dict[str, Any]) -> dict[str, Any]:
        for value in payload.values():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number or value is None or isinstance(value, str | bool)):
                raise ValueError("payload contains values other than numbers, strings, true, false and null")
            if number and not -MOST_NUMBER <= value <= MOST_NUMBER:  # false of NaN, too
                raise ValueError("payload contains a number that is not finite or too large")
        if len(canonical(payload)) > MOST_PAYLOAD:
            raise ValueError(f"payload is longer than {MOST_PAYLOAD} bytes")
        return payload


Source = Literal["link", "prolific"]
SOURCES: tuple[Source, ...] = get_args(Source)
"""Where ids of participants come from: a `pid` in a link, or Prolific. An id is one participant whatever its source."""


class Recruit(_Sent):
    """The identity in a recruiter's link; kept in the file of identities only.

    Prolific's ids are 24 hexadecimal digits each. ``signature`` is this workspace's, of `study.participation.links`;
    ``token`` is Prolific's, of `study.participation.prolific`.
    """

    source: Source = "link"
    person: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.@-]{1,200}$")]
    study: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")] | None = None
    session: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")] | None = None
    signature: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{22}$")] | None = None
    token: Annotated[str, Field(max_length=4096, pattern=r"^[A-Za-z0-9_.-]+$")] | None = None

    @model_validator(mode="after")
    def _prolific(self) -> Recruit:
        ids = (self.person, self.study, self.session)
        if self.source == "prolific" and not all(re.fullmatch("[0-9a-f]{24}", str(i)) for i in ids):
            raise ValueError("Prolific's IDs have 24 hexadecimal digits each: participant, study and session.")
        return self


class SessionCredentials(_Sent):
    """Proof that a session is theirs: the secret their browser keeps, or the private code."""

    browser: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{32,100}$")] | None = None
    code: Annotated[str, Field(min_length=1, max_length=40)] | None = None


class ClientDevice(_Sent):
    """A device as it is stored: families, never the browser's own description of itself."""

    browser: Literal["Chrome", "Edge", "Firefox", "Safari", "Opera", "Samsung", "other"]
    major: int | None = Field(default=None, ge=0, le=10_000)
    system: Literal["Windows", "macOS", "Linux", "Android", "iOS", "ChromeOS", "other"]
    width: int = Field(ge=0, le=100_000)
    height: int = Field(ge=0, le=100_000)
    dpr: float = Field(ge=0, le=100, allow_inf_nan=False)
    touch: bool


class CheckResponses(_Sent):
    """One try of the comprehension check: its number, from 1, and the option chosen for each question, from 0."""

    attempt: int = Field(ge=1, le=100)
    answers: list[Annotated[int, Field(ge=0, le=100)]] = Field(max_length=100)


class QuestionnaireResponses(_Sent):
    """The questionnaire: by item the point of a scale, from 1, the option chosen, or the text."""

    answers: dict[str, Annotated[str, Field(max_length=5000)] | int]
