"""Adversarial robustness. `ATTACKS` names the searches: adding one is one function and one line.

``attack(classifier, images, targets, *, radius, generator, progress, **parameters)`` looks for inputs whose every value
is within ``radius`` of the image's and which the network does not call ``targets`` any more. ``radius`` is a share of
the range from black to white, whatever the network's normalisation.
"""

from core.registry import Registry

ATTACKS = Registry(
    "attack",
    {
        "fgsm": "core.robustness.attacks:fgsm",
        "pgd": "core.robustness.attacks:pgd",
        "langevin": "core.robustness.attacks:langevin",
    },
)
"""Searches by name, from the cheapest to the most thorough."""
