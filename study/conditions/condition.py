"""What a condition is: a name, its two factors, and the assets it puts in each place of a trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, Trial

if TYPE_CHECKING:  # it imports torch, which a server of participants never needs
    from study.conditions.making import Studio, TrialMaterial


@dataclass(frozen=True)
class ShownAssets:
    """Assets (SHA-256) of one trial under one condition.

    Attributes
    ----------
    target
        The plain picture; every condition shows it.
    target_map
        The picture under its map, or None.
    examples
        For each option, the pictures beneath its name; empty where the condition shows none.
    """

    target: str
    target_map: str | None
    examples: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Condition:
    """One condition of the experiment and its levels of the two factors.

    Attributes
    ----------
    placebo
        It looks like an explanation and says nothing of the AI's answer.
    other
        It says something of the AI's answer that is neither a map nor examples. Like a placebo it is compared with the
        other conditions, stays out of the models of the two factors, and has pictures of its own in each trial.
    make
        Makes the images that only this condition shows, while the study is built; None where it has none.
    words
        Texts it has of its own: the key of the catalogue by the key that it stands for.
    """

    name: str
    shows_saliency: bool
    shows_examples: bool
    shown: Callable[[Trial], ShownAssets]
    make: Callable[[Studio, TrialMaterial], ConditionAssets] | None = None
    placebo: bool = False
    other: bool = False
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_separate(self) -> bool:
        """Whether it stays out of the models of the two factors."""
        return self.placebo or self.other

    def read(self, trial: Trial) -> Trial:
        """The trial as a simulated person reads it: what is known of the explanation that she is shown."""
        if not self.is_separate or self.name not in trial.assets.by_condition:  # an attention check has no explanation
            return trial
        shown = trial.assets.by_condition[self.name]
        return trial.model_copy(
            update={"relevance": shown.relevance, "teaching": {**trial.teaching, "gain": shown.gain}}
        )


def no_examples(trial: Trial) -> dict[str, tuple[str, ...]]:
    """Nothing beneath either option."""
    return dict.fromkeys(trial.options, ())


def plain_examples(trial: Trial) -> dict[str, tuple[str, ...]]:
    """The example pictures beneath the option that the AI calls them."""
    return {option: tuple(e.image for e in trial.assets.examples if e.category == option) for option in trial.options}


def list_mapped_examples(trial: Trial) -> dict[str, tuple[str, ...]]:
    """The same examples, each under its map."""
    return {option: tuple(e.map for e in trial.assets.examples if e.category == option) for option in trial.options}
