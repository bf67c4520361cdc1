"""Is a map true to its network? `MEASURES` names every measure: adding one is one function here and one line.

What a measure takes follows from what it asks. Curves ask the network with parts of the picture gone:
``curve(classifier, images, targets, maps, *, progress, **parameters)``. Masses ask where the evidence lies, given the
truth: ``mass(maps, inside, **parameters)``. Randomisation asks whether the method looks at the weights at all:
``randomisation(classifier, images, targets, method, *, generator, progress, **parameters)``.
"""

from core.registry import Registry

MEASURES = Registry(
    "measure of faithfulness",
    {
        "deletion": "core.faithfulness.curves:deletion",
        "insertion": "core.faithfulness.curves:insertion",
        "relevance_mass": "core.faithfulness.mass:relevance_mass",
        "relevance_rank": "core.faithfulness.mass:relevance_rank",
        "pointing_hit": "core.faithfulness.mass:pointing_hit",
        "cascading_randomisation": "core.faithfulness.randomisation:cascading_randomisation",
    },
)
