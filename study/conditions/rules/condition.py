"""The image and, above each name, the rule nearest to the image by which the AI chooses this name, in words.

Rules are the leaves of a tree that imitates the AI on images with known objects and contexts. For both options it is
the rule that the image comes closest to, of those that lead to this option: participants find out what the AI chose by
checking which of the rules holds.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, significant
from study.conditions.own_images import explain_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from core.distillation.rules import Rules
    from study.conditions.making import Studio, TrialMaterial

NAME = "rules"
DRAWS = 800
"""Images that the rules are fitted to and judged on."""
LEAVES, SMALLEST = 64, 8


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Draw, for each option, the rule that leads to it and that the image comes closest to."""
    from study.conditions.rules.card import draw_rule

    rules = studio.once(NAME, lambda: _imitate(studio))
    features = _describe(rules, material)
    drawn: dict[str, tuple[str, ...]] = {}
    gain = 0.0
    for k, option in zip(material.classes, material.options, strict=True):
        leaf = choose_rule(rules, features, k)
        share = compute_share(rules, leaf, k)
        drawn[option] = (studio.write(draw_rule(rules.read_rule(leaf), share, studio.texts, studio.size)),)
        if not rules.tree.leaves[leaf].count_violations(features)[0]:
            gain = _compute_gain(rules, leaf, *material.classes)
    return ConditionAssets(examples=drawn, gain=significant(gain))


def _imitate(studio: Studio) -> Rules:
    """Fit rules to the AI's predictions of images of the pool, drawn again in random contexts."""
    import torch

    from core.distillation.factors import encode_factors
    from core.distillation.rules import fit_rules
    from core.network.decoding import read_batches
    from study.conditions.rules.draws import draw_again

    described = draw_again(studio.pool, DRAWS, studio.seed_of(NAME))
    batches = read_batches(studio.classifier, described.open, 0, DRAWS)
    predicted = torch.cat([studio.classifier.logits(batch).argmax(1) for batch in batches]).numpy()
    features, columns = encode_factors(described.values)
    generator = torch.Generator().manual_seed(studio.seed_of(NAME, "held out"))
    return fit_rules(features, columns, predicted, leaves=LEAVES, smallest=SMALLEST, generator=generator)


def _describe(rules: Rules, material: TrialMaterial) -> NDArray[np.float64]:
    """Return the features (1, D) of the target."""
    import numpy as np

    from study.conditions.rules.draws import list_known_factors

    known = list_known_factors(material.images)
    own = {name: (factor.known or ())[material.index] for name, factor in known.items()}
    return np.array([[float(own.get(one.factor) == one.value) for one in rules.columns]])


def choose_rule(rules: Rules, features: NDArray[np.float64], k: int) -> int:
    """Choose the rule for a class of which features (1, D) violate the fewest conditions.

    Of several it is the one that holds for most images. If no rule leads to the class, those that give it most often
    take their place.
    """
    leaves = rules.tree.leaves
    counts = [int(leaf.counts[k]) if k < len(leaf.counts) else 0 for leaf in leaves]
    shares = [count / leaf.counts.sum() for count, leaf in zip(counts, leaves, strict=True)]
    leading = [i for i, leaf in enumerate(leaves) if leaf.most_common == k and counts[i]]
    offered = leading or [i for i, share in enumerate(shares) if share == max(shares)]
    return min(offered, key=lambda i: (int(leaves[i].count_violations(features)[0]), -counts[i]))


def compute_share(rules: Rules, leaf: int, k: int) -> float:
    """Compute the share of the judged images of a rule that the AI assigns to a class; 0 where there are none."""
    counts = rules.counts[leaf]
    return float(counts[k]) / max(int(counts.sum()), 1) if k < len(counts) else 0.0


def _compute_gain(rules: Rules, leaf: int, one: int, other: int) -> float:
    """Compute the log-odds of a class against another among the images of a rule, half an image added to both.

    It is what a reader learns who finds that the rule holds.
    """
    counts = [int(rules.counts[leaf][k]) if k < rules.counts.shape[1] else 0 for k in (one, other)]
    return log((counts[0] + 0.5) / (counts[1] + 0.5))


CONDITION = explain_names(NAME, make)
