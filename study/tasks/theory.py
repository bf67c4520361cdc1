"""What a task may ask of a simulated participant: two probabilities, whatever the theory behind them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from study.bundle import Trial

SWITCH = 0.5
"""How often a simulated participant follows an AI that contradicts them, without explanations."""


class ShownExplanations(NamedTuple):
    """Explanations that a participant sees in a trial."""

    saliency: bool = False
    examples: bool = False


class Theory(Protocol):
    """A theory of how participants respond; `deviation` is the participant's own, in log-odds."""

    def p_ai(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:
        """Return the probability of predicting the AI, of the two options of a trial."""
        ...

    def p_accept(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:
        """Return the probability of taking the AI's label for right, where it is shown."""
        ...
