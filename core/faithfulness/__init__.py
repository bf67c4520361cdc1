"""Measures of faithfulness. `FAITHFULNESS_MEASURES` names each: adding one is a function and a line.

The arguments of a measure depend on its question. Curves query the network with parts of the image removed:
``curve(classifier, images, targets, maps, *, progress, **parameters)``, as does `infidelity`, with random parts and a
``generator``; `log_odds_erasure` takes two classes and a heatmap for each. Masks locate the evidence, given the true
object: ``mass(maps, inside, **parameters)``. Randomisation tests whether the method depends on the weights at all, and
`max_sensitivity` whether its heatmaps jump where the image barely changes:
``measure(classifier, images, targets, method, *, generator, progress, **parameters)``.
"""

from core.registry import Registry

FAITHFULNESS_MEASURES = Registry(
    "measure of faithfulness",
    {
        "deletion": "core.faithfulness.curves:deletion",
        "insertion": "core.faithfulness.curves:insertion",
        "infidelity": "core.faithfulness.infidelity:infidelity",
        "log_odds_erasure": "core.faithfulness.erasure:log_odds_erasure",
        "relevance_mass": "core.faithfulness.pointing:relevance_mass",
        "relevance_rank": "core.faithfulness.pointing:relevance_rank",
        "pointing_hit": "core.faithfulness.pointing:pointing_hit",
        "cascading_randomisation": "core.faithfulness.randomisation:cascading_randomisation",
        "max_sensitivity": "core.faithfulness.sensitivity:max_sensitivity",
    },
)
