"""Bodies of the page's requests that are no payloads of the experiment: checked as a whole."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from study.participation.payloads import ClientDevice, Recruit, SessionCredentials


class Body(BaseModel):
    """A request's body: nothing but what its class names."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Entry(Body):
    """Body of ``/api/v1/entry``: the study, which a researcher's preview may show before it is open."""

    study: str = Field(max_length=200, pattern=r"^[^\x00]+$")
    preview: bool = False


class Begin(Body):
    """Body of ``/api/v1/begin``: the id of the link and what shows that it is theirs, a preview, or a personal link."""

    study: str = Field(max_length=200, pattern=r"^[^\x00]+$")
    recruit: Recruit | None = None
    proof: SessionCredentials | None = None
    preview: bool = False
    condition: str | None = Field(default=None, max_length=100)
    link: str | None = Field(default=None, max_length=100)


class SittingBody(Body):
    """Body of ``/api/v1/sitting``: the number of the sitting that starts."""

    number: int = Field(ge=1, le=100)


class ConsentBody(Body):
    """Body of ``/api/v1/consent``."""

    agreed: bool
    device: ClientDevice | None = None


class Ready(Body):
    """Body of ``/api/v1/ready``: which page was read."""

    stage: Literal["instructions", "example"]


class Withdrawal(Body):
    """Body of ``/api/v1/withdraw``: the private code."""

    code: str = Field(min_length=1, max_length=40)
