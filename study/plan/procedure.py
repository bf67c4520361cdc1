"""What a participant goes through besides the trials: the sections of the study file that say so, all optional."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from study.bundle import Manifest

TAKEN = "12345"
"""Keys of the page that answer how sure a person is (``dashboard/runner/trials.js``)."""
Count = Annotated[int, Field(ge=0)]
Code = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,40}$")]


class Section(BaseModel):
    """A table of the study file; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Consent(Section):
    """``[consent]``: the version of the text, and the boxes to tick where two are not the right ones."""

    version: str = "1"
    boxes: tuple[str, ...] = ()


class Contact(Section):
    """``[contact]``: who answers for the study, an e-mail address to write to, which board approved it, as what number.

    Shown with the consent, at every end, and wherever somebody cannot go on; what is left out is not mentioned.
    """

    researcher: str = ""
    email: Annotated[str, Field(pattern=r"^([^@\s<>%?&\"]+@[^@\s<>%?&\"]+)?$")] = ""
    board: str = ""
    approval: str = ""


class DeviceRequirements(Section):
    """``[device]``: the smallest window in CSS pixels, and whether a phone or tablet will do."""

    width: Count = 320
    height: Count = 480
    touch: bool = True


class Keys(Section):
    """``[keys]``: the two keys that answer, by the character each writes; capitals are the same keys."""

    left: str = "f"
    right: str = "j"

    @field_validator("left", "right")
    @classmethod
    def _one(cls, key: str) -> str:
        if len(key) != 1 or not key.isprintable() or key.isspace() or len(key.lower() + key.upper()) != 2:
            raise ValueError(f'{key!r} is not one key: name it by the one character it writes, no space, as "f".')
        if key in TAKEN:
            raise ValueError(f"{key!r} answers how sure a person is ({TAKEN[0]} to {TAKEN[-1]}): choose another key.")
        return key.lower()

    @model_validator(mode="after")
    def _two(self) -> Keys:
        if self.left == self.right:
            raise ValueError(f"left and right are both {self.left!r}: give each side a key of its own.")
        return self


class CheckQuestion(Section):
    """``[[check.questions]]``: a question about the instructions; ``answer`` is one of its ``options``."""

    text: str
    options: Annotated[tuple[str, ...], Field(min_length=2, max_length=8)]
    answer: str

    @model_validator(mode="after")
    def _check_answer(self) -> CheckQuestion:
        if self.answer not in self.options or len(set(self.options)) != len(self.options):
            raise ValueError(f"answer {self.answer!r} must be one of the options, and each option stand once.")
        return self


class ComprehensionCheck(Section):
    """``[check]``: the comprehension check before a place is given."""

    tries: Annotated[int, Field(ge=1, le=5)] = 2
    questions: tuple[CheckQuestion, ...] = ()


class Pacing(Section):
    """``[road]``: pauses, attention and time.

    ``break_every`` trials a pause (0: none); ``catch`` instructed trials, spread, of which ``catch_allowed`` may be
    missed before the exclusion rule names the person; ``hold_minutes`` is how long a place is kept at least.
    """

    break_every: Count = 30
    catch: Annotated[int, Field(ge=0, le=20)] = 0
    catch_allowed: Count = 0
    confidence: bool = False
    slow_seconds: Annotated[int, Field(ge=5)] = 30
    longest_minutes: Annotated[int, Field(ge=1)] = 120
    hold_minutes: Annotated[int, Field(ge=1)] = 30


class Item(Section):
    """``[[questionnaire]]``: an item after the trials. A scale has ``points`` between ``low`` and ``high``."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
    kind: Literal["scale", "choice", "text"]
    text: str
    options: tuple[str, ...] = ()
    points: Annotated[int, Field(ge=2, le=11)] = 7
    low: str = ""
    high: str = ""
    required: bool = True

    @model_validator(mode="after")
    def _fits(self) -> Item:
        if (self.kind == "choice") != (len(self.options) >= 2):
            raise ValueError(f"item {self.id!r}: a choice needs at least 2 options, and no other kind has any.")
        return self


class Recruiter(Section):
    """``[recruiter]``: the codes it expects ("": each person gets her own), the link back (``{code}`` in it).

    ``retention_days`` is how long its ids of people are kept, in a file of their own.
    """

    complete: Code = ""
    screened: Code = ""
    declined: Code = ""
    partial: Code = ""
    url: Annotated[str, Field(pattern=r"^(https://\S+)?$")] = ""
    retention_days: Annotated[int, Field(ge=1)] = 180


class Pay(Section):
    """``[pay]``: the bonus in minor units (pence, cents): ``min(most, per_right * right predictions)``."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "GBP"
    per_right: Count = 0
    most: Count = 0


class Procedure(Section):
    """Everything about the road of a participant."""

    language: Literal["en", "de"] = "en"
    consent: Consent = Consent()
    contact: Contact = Field(default=Contact(), exclude_if=lambda found: found == Contact())
    """Where nobody is named it is not written: studies frozen before there was any keep their hash."""
    device: DeviceRequirements = DeviceRequirements()
    keys: Keys = Field(default=Keys(), exclude_if=lambda found: found == Keys())
    """Not written either where they are the usual ones."""
    check: ComprehensionCheck = ComprehensionCheck()
    road: Pacing = Pacing()
    questionnaire: tuple[Item, ...] = ()
    recruiter: Recruiter = Recruiter()
    pay: Pay = Pay()

    @model_validator(mode="after")
    def _once(self) -> Procedure:
        ids = [item.id for item in self.questionnaire]
        if len(set(ids)) != len(ids):
            raise ValueError("questionnaire: give each item an id of its own.")
        return self


def procedure_of(manifest: Manifest) -> Procedure:
    """The procedure of a frozen study; what an older one does not say is as by default."""
    return Procedure.model_validate({k: v for k, v in manifest.config.items() if k in Procedure.model_fields})
