"""The procedure for participants apart from the trials: its sections of the study file, all optional."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from core.registry import Registry
from study.bundle import STUDY_NAME, TYPE_LABELS, Manifest
from study.locales import Language
from study.plan.former import ROAD
from study.plan.services import SERVICES, find_link_fault
from study.workspace.same import FEW_STUDIES, Same

TAKEN = "12345"
"""Keys of the page for confidence ratings (``dashboard/runner/trials.js``)."""
TO_BUILD = {"to_build": True}
"""Context of the check of a study file that is written or built, which asks for more than a frozen study needs."""
MOST_SITTINGS, LONGEST_WAIT_H = 10, 365 * 24
Count = Annotated[int, Field(ge=0)]
StudyName = Annotated[str, Field(pattern=rf"^{STUDY_NAME.pattern}$")]
AllocationOrder = Literal["blocks", "shuffled"]
Code = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,40}$")]


def require(registry: Registry, name: str) -> None:
    """Raise the registry's error as a ValueError, which Pydantic collects."""
    if name not in registry:
        raise ValueError(registry.unknown(name))


class Section(BaseModel):
    """A table of the study file; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Consent(Section):
    """``[consent]``: the version of the text, and the boxes to tick instead of the default two."""

    version: str = "1"
    boxes: tuple[str, ...] = ()


class Contact(Section):
    """``[contact]``: the responsible researcher, an e-mail address, the ethics board and its approval number.

    Shown with the consent, on every final page, and wherever a participant cannot continue; empty entries are omitted.
    """

    researcher: str = ""
    email: Annotated[str, Field(pattern=r"^([^@\s<>%?&\"]+@[^@\s<>%?&\"]+)?$")] = ""
    board: str = ""
    approval: str = ""


class DeviceRequirements(Section):
    """``[device]``: the smallest window in CSS pixels, and whether phones and tablets are allowed."""

    width: Count = 320
    height: Count = 480
    touch: bool = True


class Keys(Section):
    """``[keys]``: the two response keys, by the character each types; capitals are the same keys."""

    left: str = "f"
    right: str = "j"

    @field_validator("left", "right")
    @classmethod
    def _one(cls, key: str) -> str:
        if len(key) != 1 or not key.isprintable() or key.isspace() or len(key.lower() + key.upper()) != 2:
            raise ValueError(f'{key!r} is not one key: give the one character it types, not a space, such as "f".')
        if key in TAKEN:
            raise ValueError(f"{key!r} rates confidence ({TAKEN[0]} to {TAKEN[-1]}): choose another key.")
        return key.lower()

    @model_validator(mode="after")
    def _two(self) -> Keys:
        if self.left == self.right:
            raise ValueError(f"left and right are both {self.left!r}: give each side its own key.")
        return self


class CheckQuestion(Section):
    """``[[check.questions]]``: a question about the instructions; ``answer`` is the correct one of its ``options``."""

    text: str
    options: Annotated[tuple[str, ...], Field(min_length=2, max_length=8)]
    answer: str

    @model_validator(mode="after")
    def _check_answer(self) -> CheckQuestion:
        if self.answer not in self.options or len(set(self.options)) != len(self.options):
            raise ValueError(f"`answer` {self.answer!r} must be one of the options, and no option may occur twice.")
        return self


class ComprehensionCheck(Section):
    """``[check]``: the comprehension check before a participant is allocated."""

    tries: Annotated[int, Field(ge=1, le=5)] = 2
    questions: tuple[CheckQuestion, ...] = ()


class Pacing(Section):
    """``[pacing]``: breaks, attention checks and time limits.

    A break every ``break_every`` trials (0: none) where at least half as many follow; ``catch`` attention checks spread
    over the trials, of which a participant may fail ``catch_allowed`` before the exclusion rule applies;
    ``hold_minutes`` is the minimum time for which a place is reserved.
    """

    break_every: Count = 30
    catch: Annotated[int, Field(ge=0, le=20)] = 0
    catch_allowed: Count = 0
    confidence: bool = False
    slow_seconds: Annotated[int, Field(ge=5)] = 30
    longest_minutes: Annotated[int, Field(ge=1)] = 120
    hold_minutes: Annotated[int, Field(ge=1)] = 30


class Blocks(Section):
    """``[blocks]``: alternate training and test, without which every trial is a test (docs/how-to/train-and-test.md).

    Each of ``rounds`` has a block of ``training`` trials, with the explanation of the condition, and one of ``test``
    trials, with the image alone in every condition. Only test trials are analysed. With ``feedback``, participants read
    the AI's prediction after each training response; with ``reservoir``, the training images seen so far stay available
    in test trials, with their explanations and, with ``feedback``, the AI's predictions.
    """

    training: Annotated[int, Field(ge=1)]
    test: Annotated[int, Field(ge=1)]
    rounds: Annotated[int, Field(ge=1)] = 1
    feedback: bool = True
    reservoir: bool = True

    @property
    def total(self) -> int:
        """Number of trials of a participant."""
        return self.rounds * (self.training + self.test)

    def find_shortage(self, trials: int) -> str:
        """Say that a study has too few trials for its blocks, with the remedy; empty where it has enough."""
        if trials >= self.total:
            return ""
        return (
            f"blocks: {self.rounds} x ({self.training} training + {self.test} test) trials are {self.total}, but the "
            f"study has {trials}. Lower them, or raise trials.categories or trials.per_type."
        )


class Sittings(Section):
    """``[sittings]``: several sittings, by a personal link (docs/how-to/run-several-sittings.md).

    The trials of each participant are divided among ``count`` sittings. The next one can be started ``gap_hours`` after
    the end of the one before, and until ``within_hours`` after it; then the participation ends. ``codes`` are the
    completion codes of all sittings but the last, where the recruitment service pays for each; the last one has
    ``recruiter.complete``.
    """

    count: int
    gap_hours: int = 24
    within_hours: int = 72
    codes: tuple[Code, ...] = ()

    @field_validator("count")
    @classmethod
    def _check_count(cls, count: int) -> int:
        if count == 1:
            raise ValueError("a study of one sitting has no sittings to divide. Remove the section, or give 2 to 10.")
        if not 1 < count <= MOST_SITTINGS:
            raise ValueError(f"{count} sittings cannot be. Give 2 to {MOST_SITTINGS}.")
        return count

    @field_validator("gap_hours")
    @classmethod
    def _check_gap(cls, hours: int) -> int:
        if hours < 1:
            raise ValueError(f"{hours} is no time between sittings. Give at least 1; pacing.break_every makes breaks.")
        return hours

    @model_validator(mode="after")
    def _check_times(self) -> Sittings:
        if not self.gap_hours < self.within_hours <= LONGEST_WAIT_H:
            raise ValueError(
                f"within_hours is {self.within_hours}: a sitting closes after it opens (gap_hours = {self.gap_hours}), "
                f"and within a year. Give a number above {self.gap_hours} and up to {LONGEST_WAIT_H:,}."
            )
        if self.codes and (len({*self.codes} - {""}) != len(self.codes) or len(self.codes) != self.count - 1):
            raise ValueError(
                f"codes: {self.count} sittings need {self.count - 1} different codes, of all but the last. Give these, "
                "or none where participants are paid once, at the end."
            )
        return self

    def find_shortage(self, counts: Mapping[str, int]) -> str:
        """Say that a study has too few trials of a type for its sittings, with the remedy; empty where they suffice."""
        short = next((kind for kind, trials in counts.items() if trials < self.count), None)
        if short is None:
            return ""
        return (
            f"sittings: {self.count} sittings need at least {self.count} trials of each type, and there "
            f"{'is' if counts[short] == 1 else 'are'} {counts[short]} with the {TYPE_LABELS[short]}. Lower "
            "sittings.count, or give the study more trials."
        )


class Item(Section):
    """``[[questionnaire]]``: an item after the trials. A scale has ``points`` from ``low`` to ``high``."""

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
            raise ValueError(f"item {self.id!r}: a choice needs at least 2 options, and other kinds have none.")
        return self


class Recruiter(Section):
    """``[recruiter]``: the recruitment service, the codes it expects, and the link back.

    ``service`` is prolific, sona, mturk or connect (docs/how-to/recruit.md). Without a code each participant gets their
    own. In the link back, ``{code}`` is replaced with the code and ``{id}`` with the participant's own id at the
    service; Prolific's is known. A link without ``{code}`` is offered only to those who completed the study.
    ``retention_days`` is how long its participant IDs are kept, in a separate file. ``exclude`` names studies of this
    workspace, such as a pilot, whose participants are turned away; they are recognised by the ID in their link.
    """

    service: Literal["", "prolific", "sona", "mturk", "connect"] = Field(default="", exclude_if=lambda value: not value)
    """Omitted from the settings if empty: studies frozen before this setting existed keep their hash."""
    complete: Code = ""
    screened: Code = ""
    declined: Code = ""
    partial: Code = ""
    url: Annotated[str, Field(pattern=r"^(https://\S+)?$")] = ""
    retention_days: Annotated[int, Field(ge=1)] = 180
    exclude: tuple[StudyName, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Omitted from the settings if empty: studies frozen before this setting existed keep their hash."""

    @property
    def link_back(self) -> str:
        """The link back: the study file's own, or else the service's if it is the same for all studies."""
        return self.url or (SERVICES["prolific"].link_back if self.service == "prolific" else "")

    @model_validator(mode="after")
    def _check_link(self, info: ValidationInfo) -> Recruiter:
        """Check the link back where a study is to be built: those frozen with another stay readable."""
        fault = find_link_fault(self.link_back, (self.complete, self.screened, self.declined, self.partial))
        if info.context == TO_BUILD and fault is not None:
            raise ValueError(fault)
        if info.context == TO_BUILD and self.service == "sona" and "{id}" not in self.url:
            raise ValueError(f"SONA needs the link back in url. {SERVICES['sona'].remark}")
        return self


class Pay(Section):
    """``[pay]``: the bonus in minor units (pence, cents): ``min(most, per_right * right predictions)``."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "GBP"
    per_right: Count = 0
    most: Count = 0


class Procedure(Section):
    """The procedure for a participant."""

    language: Language = "en"
    consent: Consent = Consent()
    contact: Contact = Field(default=Contact(), exclude_if=lambda value: value == Contact())
    """Omitted from the settings if empty: studies frozen before this setting existed keep their hash."""
    device: DeviceRequirements = DeviceRequirements()
    keys: Keys = Field(default=Keys(), exclude_if=lambda value: value == Keys())
    """Omitted from the settings if they are the defaults."""
    check: ComprehensionCheck = ComprehensionCheck()
    pacing: Pacing = Field(default=Pacing(), validation_alias=AliasChoices("pacing", ROAD))
    blocks: Blocks | None = Field(default=None, exclude_if=lambda value: value is None)
    """Omitted from the settings if there are none: studies frozen before this setting existed keep their hash."""
    sittings: Sittings | None = Field(default=None, exclude_if=lambda value: value is None)
    """Omitted from the settings if there is one: studies frozen before this setting existed keep their hash."""
    questionnaire: tuple[Item, ...] = ()
    recruiter: Recruiter = Recruiter()
    pay: Pay = Pay()

    @model_validator(mode="after")
    def _once(self) -> Procedure:
        ids = [item.id for item in self.questionnaire]
        if len(set(ids)) != len(ids):
            raise ValueError("questionnaire: give each item an id of its own.")
        if self.sittings is not None and self.recruiter.complete in self.sittings.codes:
            raise ValueError("sittings.codes: the code of the last sitting, recruiter.complete, must be another one.")
        return self


def procedure_of(manifest: Manifest) -> Procedure:
    """Return the procedure of a frozen study; settings that an older one lacks have their defaults."""
    return _read_procedure(Same(manifest.config))


@lru_cache(FEW_STUDIES)
def _read_procedure(config: Same[dict[str, Any]]) -> Procedure:
    return Procedure.model_validate({k: v for k, v in config.value.items() if k in {*Procedure.model_fields, ROAD}})
