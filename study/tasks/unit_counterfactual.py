"""Which of two occlusions of an image leaves a unit of the network more active? References as in `unit_choice`.

Source: Zimmermann, Borowski, Geirhos, Bethge, Wallis & Brendel (2021, NeurIPS, arXiv:2106.12447).
"""

from __future__ import annotations

from dataclasses import replace

from study.locales import TASK_TEXTS
from study.tasks.unit_choice import TASK as UNIT_CHOICE

TASK = replace(
    UNIT_CHOICE,
    name="unit_counterfactual",
    aim="Do reference images help participants predict what an occlusion does to a unit of the AI?",
    act="choose the occluded image that activates the unit more",
    outcome="Correct choices between two occlusions",
    meaning="the participant chose the occluded image that activates the unit more",
    of_units="occlusions",
    texts={
        language: {**UNIT_CHOICE.texts[language], **texts}
        for language, texts in TASK_TEXTS["unit_counterfactual"].items()
    },
)
