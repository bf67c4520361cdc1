"""What the method section says of trials that were chosen by responses."""

from __future__ import annotations

from collections.abc import Iterator

from study.plan.adaptive import Adaptive, describe_policy


def describe_choice(adaptive: Adaptive) -> Iterator[str]:
    """Describe the policy, what it left fixed, and how the analysis takes it into account."""
    source = "Levitt, 1971; Kaernbach, 1991" if adaptive.policy == "staircase" else "van der Linden & Glas, 2010"
    yield f"Trials were chosen as follows ({source}): {describe_policy(adaptive)}."
    yield (
        "The sequence of trial types, and of the side of the correct option, was drawn before the first trial and did "
        "not depend on responses. As the choice equates accuracy, conditions were compared at the same difficulty of "
        "trials, which is in all models as a fixed effect and as a slope by participant."
    )
