"""What the participant's page sends: checked whole before it comes near the database."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from study.bundle import canonical

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{8,64}$")]
Milliseconds = Annotated[float, Field(ge=0, le=1e13, allow_inf_nan=False)]

MOST_PAYLOAD = 2000


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(_Sent):
    """One answer.

    Attributes
    ----------
    trial_index
        Index in the person's plan, from 0.
    attempt_id
        Made by the page once per answer: a repeated id is a retry, another one a second answer.
    side, input
        Which button, and how it was pressed.
    rt_ms
        Response time: `event_ms` - `onset_ms`.
    onset_ms, event_ms, handler_ms, time_origin_ms
        Clock of the browser: second frame after the picture was ready, the event's own time stamp, when the
        handler ran; and the origin of that clock in ms since 1970.
    frame_hz
        Refresh rate as measured by the page.
    n_exposures, resumed
        How often the trial was shown to this person, and whether the page was reloaded in between.
    blur_ms
        How long the page was out of sight between onset and answer.
    """

    trial_index: int = Field(ge=0)
    attempt_id: Identifier
    side: Literal["left", "right"]
    input: Literal["key", "mouse", "touch", "sim"]
    rt_ms: Milliseconds
    onset_ms: Milliseconds | None = None
    event_ms: Milliseconds | None = None
    handler_ms: Milliseconds | None = None
    time_origin_ms: Milliseconds | None = None
    frame_hz: Milliseconds | None = None
    n_exposures: int = Field(default=1, ge=1, le=10_000)
    resumed: bool = False
    blur_ms: Milliseconds = 0.0


class ClientEvent(_Sent):
    """Something the page noticed: blur, focus, resize, offline, an early key, ..."""

    event_id: Identifier
    kind: str = Field(pattern=r"^[a-z_]{1,40}$")
    trial_index: int | None = Field(default=None, ge=0)
    t_client_ms: Milliseconds | None = None
    payload: dict[str, Any] = Field(default_factory=dict)

    @field_validator("payload")
    @classmethod
    def _small(cls, payload: dict[str, Any]) -> dict[str, Any]:
        if len(canonical(payload)) > MOST_PAYLOAD:
            raise ValueError(f"payload is longer than {MOST_PAYLOAD} bytes")
        return payload
