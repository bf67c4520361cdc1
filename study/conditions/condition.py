"""A condition: its name, its levels of the two factors, and the assets it shows in each place of a trial."""

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
        The plain image, which every condition shows; of a unit its references, or None.
    target_map
        The image under its heatmap, or None.
    examples
        For each option, the images shown with its name; empty if the condition shows none.
    """

    target: str | None
    target_map: str | None
    examples: dict[str, tuple[str, ...]]


MakeAssets = Callable[["Studio", "TrialMaterial"], ConditionAssets]
"""Make the images of a trial that only one condition shows."""


@dataclass(frozen=True)
class Condition:
    """One condition of the experiment and its levels of the two factors.

    Attributes
    ----------
    placebo
        It looks like an explanation and says nothing about the AI's prediction.
    other
        It explains the AI's prediction by something else than the study's heatmaps and examples. Like a placebo, it is
        compared with the other conditions, stays out of the models of the two factors, and has its own images in each
        trial.
    explains_each_option
        Its images with the names are heatmaps of the target, one for each option, however many a trial has.
    policy
        The teaching policy by which its own examples are chosen, next to those of the study's policy; None if it has
        none.
    make
        Makes the images that only this condition shows, when the study is built; None if it has none.
    words
        Its own texts: the catalogue's key to use in place of each key.
    """

    name: str
    shows_saliency: bool
    shows_examples: bool
    shown: Callable[[Trial], ShownAssets]
    make: MakeAssets | None = None
    placebo: bool = False
    other: bool = False
    explains_each_option: bool = False
    policy: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_separate(self) -> bool:
        """Whether it stays out of the models of the two factors."""
        return self.placebo or self.other

    @property
    def shows_heatmaps(self) -> bool:
        """Whether it shows a heatmap of the target, or one for each option."""
        return self.shows_saliency or self.explains_each_option

    @property
    def explains_otherwise(self) -> bool:
        """Whether it explains in a way of its own, and not as the study does but with other examples or a placebo."""
        return self.other and (self.policy is None or bool(self.words))

    def read(self, trial: Trial) -> Trial:
        """Return the trial as a simulated participant reads it, with the values of the explanation shown to them."""
        if not self.is_separate or self.name not in trial.assets.by_condition:  # an attention check has no explanation
            return trial
        shown = trial.assets.by_condition[self.name]
        teaching = trial.teaching.model_copy(update={"gain": shown.gain})
        return trial.model_copy(update={"relevance": shown.relevance, "teaching": teaching})


def no_examples(trial: Trial) -> dict[str, tuple[str, ...]]:
    """Show no image beneath either option."""
    return dict.fromkeys(trial.options, ())


def plain_examples(trial: Trial) -> dict[str, tuple[str, ...]]:
    """Return the example images beneath the option that the AI calls them."""
    return {option: tuple(e.image for e in trial.assets.examples if e.category == option) for option in trial.options}


def list_mapped_examples(trial: Trial) -> dict[str, tuple[str, ...]]:
    """Return the same examples, each under its heatmap."""
    return {option: tuple(e.map for e in trial.assets.examples if e.category == option) for option in trial.options}
