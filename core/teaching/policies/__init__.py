"""Teaching policies: which examples teach. `POLICIES` names every one; adding one is one file here and one line.

A policy is a `core.teaching.policies.policy.Policy`. All of them choose among the same candidates, two images of each
category, and are judged by the same learner.
"""

from core.registry import Registry

POLICIES = Registry(
    "teaching policy",
    {
        "first": "core.teaching.policies.drawn:FIRST",
        "best": "core.teaching.policies.drawn:BEST",
        "random": "core.teaching.policies.drawn:RANDOM",
        "unhelpful": "core.teaching.policies.drawn:UNHELPFUL",
        "greedy": "core.teaching.policies.greedy:GREEDY",
        "influence": "core.teaching.policies.influence:INFLUENCE",
        "nearest": "core.teaching.policies.nearest:NEAREST",
    },
)
