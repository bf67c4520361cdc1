"""Measures of faithfulness. `FAITHFULNESS_MEASURES` names each: adding one is a function and a line.

What a measure takes follows from what it asks. Curves ask the network with parts of the picture gone:
``curve(classifier, images, targets, maps, *, progress, **parameters)``, as does `infidelity`, with random parts and a
``generator``; `log_odds_erasure` takes two classes and a map for each. Masses ask where the evidence lies, given the
truth: ``mass(maps, inside, **parameters)``. Randomisation asks whether the method looks at the weights at all, and
`max_sensitivity` whether its maps jump where the picture hardly changes:
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
