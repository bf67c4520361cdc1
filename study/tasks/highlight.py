"""Brush over the evidence for the AI's label, which is shown. The heatmap of the image is sealed.

Source: ClickMe (Linsley, Shiebler, Eberhardt & Serre, 2019, "Learning what and where to attend", ICLR,
arXiv:1805.08819); Yang, Folke & Shafto (2022, ICML, arXiv:2205.08452) compare heatmaps with those that people give.

A brush is correct if at least half of it lies in the region of the heatmap. Whether it covers the peak would count who
brushes over everything as correct.
"""

from __future__ import annotations

from dataclasses import replace

from study.locales import TASK_TEXTS
from study.tasks.localise import TASK as LOCALISE

TASK = replace(
    LOCALISE,
    name="highlight",
    act="brush over the AI's evidence",
    outcome="Brushed areas in the region of the AI's evidence",
    meaning="at least half of the brushed area is in the region of the AI's heatmap: choice is inside",
    place="cells",
    texts={language: {**texts, **TASK_TEXTS["highlight"][language]} for language, texts in LOCALISE.texts.items()},
)
