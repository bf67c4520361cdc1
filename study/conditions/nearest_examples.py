"""The image, and the examples of each option that are nearest to it in the AI's features."""

from __future__ import annotations

from study.conditions.policies import make_policy_condition

CONDITION = make_policy_condition("nearest_examples", "nearest")
