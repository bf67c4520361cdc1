"""The image, and the examples of each option with the most helpful influence on the AI's prediction."""

from __future__ import annotations

from study.conditions.policies import make_policy_condition

CONDITION = make_policy_condition("influence_examples", "influence")
