"""A frozen study on disk: what was built, by what, and the exact bytes a participant is shown.

Layout of a bundle: ``manifest.json`` and ``assets/<sha256>.webp``. Asset names are the SHA-256 of their bytes, so
they tell a participant nothing, and a changed byte is found. ``study_hash`` is the SHA-256 of the canonical manifest
without itself: it covers the configuration, the weights' fingerprint, every trial and every asset.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from itertools import filterfalse
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.errors import ForetellError
from study.facts import (
    AttributeFacts,
    DifficultyFacts,
    HeatmapFacts,
    RegionFacts,
    StratumFacts,
    TeachingFacts,
    UnitFacts,
)

MANIFEST = "manifest.json"
FORMAT = 1
REMEDY = "Restore it from a backup, or build the study again if nobody has taken part yet."

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""An asset's name is joined to a folder: nothing else may be there, whoever wrote the manifest."""
STUDY_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


def _study_name(name: str) -> str:
    if not STUDY_NAME.fullmatch(name):
        raise ValueError(f"{name!r}: use at most 41 lower-case letters, digits and hyphens, the first not a hyphen.")
    return name


StudyName = Annotated[str, AfterValidator(_study_name)]
"""A study's name appears in links and file names."""

LETTERS = "abcdefghi"
"""The options that a trial may have: as many as there are keys from 1 to 9."""
TrialType = Literal["adv_incorrect", "std_incorrect", "std_correct", "unit", "used", "unused"]
TRIAL_TYPES: tuple[TrialType, ...] = ("adv_incorrect", "std_incorrect", "std_correct")
"""Of trials about a prediction of the AI."""
OF_UNITS: tuple[TrialType, ...] = ("unit",)
"""Of trials about a unit of the network."""
GRID: Literal["grid"] = "grid"
OF_ATTRIBUTES: tuple[TrialType, ...] = ("used", "unused")
"""Of the rows of a trial with a `GRID` of images, which asks about several attributes at once."""
EVERY_TYPE: tuple[TrialType, ...] = (*TRIAL_TYPES, *OF_UNITS, *OF_ATTRIBUTES)
_LABELS = ("AI wrong (adversarial)", "AI wrong (standard)", "AI right", "Units", "Used by the AI", "Not used", "Grid")
TYPE_LABELS: dict[str, str] = dict(zip((*EVERY_TYPE, GRID), _LABELS, strict=True))
"""In words, the same on all pages; the paper's are adversarial incorrect, standard incorrect and standard correct."""


class Record(BaseModel):
    """A frozen part of the manifest; an unknown key is an error, not a guess."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class Example(Record):
    """One teaching example: its category as the AI predicts it, its image and its image with the heatmap."""

    category: str
    source: str
    image: str
    map: str


class ConditionAssets(Record):
    """A trial's own images of a condition outside the two factors, and what a simulated participant makes of them.

    ``examples`` are images by the option they are shown beneath, ``sources`` their ids; ``relevance`` and ``gain`` are
    of what is shown, as `Trial.relevance` and ``Trial.teaching.gain`` are of the true explanation.
    """

    target_map: str | None = None
    examples: dict[str, tuple[str, ...]] = {}
    sources: tuple[str, ...] = ()
    relevance: float | None = None
    gain: float = 0.0

    @property
    def every(self) -> tuple[str, ...]:
        """Every image of it."""
        maps = () if self.target_map is None else (self.target_map,)
        return maps + tuple(name for names in self.examples.values() for name in names)

    def list_of_option(self, option: str) -> tuple[str, ...]:
        """List the images of it without those of another option."""
        maps = () if self.target_map is None else (self.target_map,)
        return (*maps, *self.examples.get(option, ()))


class TrialAssets(Record):
    """SHA-256 of everything a trial may show; `study.conditions` says which condition shows which.

    ``by_condition`` holds what only one condition shows, under its name ("placebos" in the JSON, as the first of them
    were). Where a study has none it is not written, and does not change the hash of an older study. Of a unit,
    ``target`` and ``target_map`` are its references, those that activate it least and most, and ``examples`` the two
    images to choose from; about attributes, they are the grid of images and the same with heatmaps.
    """

    target: str
    target_map: str
    examples: tuple[Example, ...]
    by_condition: dict[str, ConditionAssets] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("placebos", "by_condition"),
        serialization_alias="placebos",
        exclude_if=lambda value: not value,
    )

    @property
    def every(self) -> tuple[str, ...]:
        """Every image of a trial, whatever the condition."""
        shown = tuple(name for example in self.examples for name in (example.image, example.map))
        return (*self.list_without_examples(), *shown)

    def list_without_examples(self) -> tuple[str, ...]:
        """List the images of a trial without the study's examples, whatever the condition."""
        own = tuple(name for assets in self.by_condition.values() for name in assets.every)
        return (self.target, self.target_map, *own)

    def list_of_option(self, option: str) -> tuple[str, ...]:
        """List the images of a trial, whatever the condition, without the examples of another option."""
        shown = tuple(name for one in self.examples if one.category == option for name in (one.image, one.map))
        own = tuple(name for assets in self.by_condition.values() for name in assets.list_of_option(option))
        return (self.target, self.target_map, *shown, *own)

    def list_examples_of(self, option: str) -> tuple[str, ...]:
        """List the image and the examples of one option, whatever the condition: no heatmap of the image itself."""
        shown = tuple(name for one in self.examples if one.category == option for name in (one.image, one.map))
        own = tuple(name for assets in self.by_condition.values() for name in assets.examples.get(option, ()))
        return (self.target, *shown, *own)


class Trial(Record):
    """One question: which of two categories, or of up to five, did the AI choose?

    ``target`` is the AI's prediction, ``alternative`` the foil, ``truth`` the ground truth, ``options`` the
    categories as (a, b, ...) in an order drawn by the study's seed: those two, and further foils where a study has
    more options. ``relevance`` is the share of the heatmap's evidence on the object where an object mask exists, else
    None; ``stratum`` (`doubt` in the JSON) that of a study that spreads its targets over a measure of their images
    (`study.building.measures`); ``region`` that of the heatmap, where responses are places.

    Of a trial about a ``unit``, ``options`` are the sides of two images, ``target`` the side of the one that activates
    the unit more, and ``truth`` is empty: nothing is predicted. Of a unit to name, ``options`` are the two outcomes of
    its raters' codes. Of one about ``attributes``, ``options`` are the two classes of its images, and ``truth`` is
    empty, too.
    """

    id: str
    trial_type: TrialType | Literal["grid"]
    target: str
    alternative: str
    truth: str
    options: Annotated[tuple[str, ...], Field(min_length=2, max_length=len(LETTERS))]
    ai_probability: float | None = Field(default=None, exclude_if=lambda probability: probability is None)
    source: str
    assets: TrialAssets
    teaching: TeachingFacts
    saliency: HeatmapFacts
    relevance: float | None = None
    stratum: StratumFacts | None = Field(
        default=None,
        validation_alias=AliasChoices("doubt", "stratum"),
        serialization_alias="doubt",
        exclude_if=lambda stratum: stratum is None,
    )
    difficulty: DifficultyFacts | None = Field(default=None, exclude_if=lambda difficulty: difficulty is None)
    region: RegionFacts | None = Field(default=None, exclude_if=lambda region: region is None)
    unit: UnitFacts | None = Field(default=None, exclude_if=lambda unit: unit is None)
    attributes: AttributeFacts | None = Field(default=None, exclude_if=lambda attributes: attributes is None)

    @property
    def ai_choice(self) -> str:
        """The option that the AI chose, by its letter."""
        return LETTERS[self.options.index(self.target)]

    @property
    def category(self) -> str:
        """What trials are grouped by in the models: the AI's prediction, or the unit."""
        return self.target if self.unit is None else self.unit.name


class Manifest(Record):
    """Everything that defines a frozen study."""

    format: int
    name: StudyName
    seed: int
    config: dict[str, Any]
    conditions: tuple[str, ...]
    texts: dict[str, str]
    classifier: dict[str, Any]
    sets: dict[str, Any]
    environment: dict[str, str]
    trials: tuple[Trial, ...]
    practice: tuple[Trial, ...]
    dropped: tuple[dict[str, str], ...]
    assets: dict[Sha256, int]
    study_hash: str = ""

    @model_validator(mode="after")
    def _check_assets(self) -> Manifest:
        shown = {name for trial in (*self.trials, *self.practice) for name in trial.assets.every}
        if shown - self.assets.keys():
            raise ValueError(f"image {min(shown - self.assets.keys())[:80]!r} is shown but not listed in assets")
        return self

    def compute_hash(self) -> str:
        """Hash (SHA-256) the canonical manifest without the study hash itself and the environment.

        The environment (library versions, machine) is provenance, not content: the same bytes built on
        another machine are the same study.
        """
        content = self.model_dump(mode="json", exclude={"study_hash", "environment"})
        return hashlib.sha256(canonical(content)).hexdigest()


def significant(value: float) -> float:
    """Round to six significant digits: what is stored must not depend on the last bit of a sum."""
    return float(f"{float(value):.6g}")


def canonical(content: Any) -> bytes:
    """Write JSON with sorted keys and no spaces: one text per content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


class DamageError(ForetellError):
    """An asset of a bundle is missing, or was changed since the study was frozen."""


class Bundle:
    """A bundle opened for reading.

    Raises
    ------
    ForetellError
        The manifest is missing, unreadable, of another format, a link that leads out of the bundle, or does not match
        its own hash.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = folder.resolve()
        self.manifest = _read(self._within(folder / MANIFEST))

    @property
    def study_hash(self) -> str:
        """The identity of the study."""
        return self.manifest.study_hash

    def asset(self, sha256: str) -> Path:
        """Return an asset's path; refuse one that the manifest does not list, and a link that leads out."""
        if sha256 not in self.manifest.assets:
            raise ForetellError(f"Asset {sha256[:12]}… is not part of study {self.manifest.name!r}.")
        return self._within(self.folder / "assets" / f"{sha256}.webp")

    def read_asset(self, sha256: str) -> bytes:
        """Read an asset; raise `DamageError` where it is missing or no longer has the bytes that were frozen."""
        path = self.asset(sha256)
        try:
            content = path.read_bytes()
        except OSError:
            raise DamageError(f"{path} is missing. {REMEDY}") from None
        if hashlib.sha256(content).hexdigest() != sha256:
            raise DamageError(f"{path} was changed since the study was frozen. {REMEDY}")
        return content

    def find_damage(self) -> Iterator[str]:
        """Describe each link that leads out, or else each asset that is missing or changed since the freeze."""
        wrong = list(self.find_wrong_links())
        yield from wrong or self.find_changed_assets()

    def find_wrong_links(self) -> Iterator[str]:
        """Describe each link that leads out or to a folder, whatever its name: a backup copies what it leads to."""
        links = [path for path in sorted(self.folder.rglob("*")) if path.is_symlink()]
        yield from map(_leads_out, filterfalse(self._holds, links))
        yield from map(_is_folder, filter(_leads_nowhere, links))

    def find_changed_assets(self) -> Iterator[str]:
        """Describe each asset that is missing or changed since the freeze."""
        for sha256 in self.manifest.assets:
            try:
                self.read_asset(sha256)
            except DamageError as error:
                yield str(error)

    def _within(self, path: Path) -> Path:
        if not self._holds(path):
            raise ForetellError(_leads_out(path))
        return path

    def _holds(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self._root)
        except (OSError, RuntimeError):  # a link to itself; which of the two depends on the version of Python
            return False


def _leads_nowhere(path: Path) -> bool:
    """Tell whether a link is to a folder, which may hold the link itself: a copy would never end."""
    try:
        return not path.is_file()
    except OSError:
        return True


def _is_folder(path: Path) -> str:
    return f"{path} is a link to a folder or to nothing. Only links to files of the bundle may be in it."


def _leads_out(path: Path) -> str:
    return f"{path} is a link that leads out of its bundle. Put the file itself there, or take another bundle."


def _read(path: Path) -> Manifest:
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ForetellError(f"No study at {path.parent}: {MANIFEST} is missing. Build it first.") from None
    except OSError as error:
        raise ForetellError(
            f"{path} cannot be read ({error.strerror}). Give this user permission to read it."
        ) from None
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the file"
        raise ForetellError(
            f"{path} cannot be read by this version ({where}: {error.errors()[0]['msg']}). Use the version of Foretell "
            "that built it: a new build would be another study."
        ) from None
    if manifest.study_hash != manifest.compute_hash():
        raise ForetellError(
            f"{path} was changed since the study was frozen: its content does not match its study hash. {REMEDY}"
        )
    return manifest
