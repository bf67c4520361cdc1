"""Names of methods, conditions and choices, and probabilities, as people read them."""

from __future__ import annotations

SPELT = {
    **{
        word.lower(): word
        for word in ("LRP", "CAM", "MC", "RISE", "LIME", "SHAP", "DeepLIFT", "SmoothGrad", "VarGrad", "HSIC", "MACO")
    },
    "smc": "SMC",
    "fgsm": "FGSM",
    "pgd": "PGD",
    "shapley": "Shapley",
    "bayesian": "Bayesian",
    "taylor": "Taylor",
    "sobol": "Sobol",
    "legendre": "Legendre",
}
"""Words of the names that are not written small."""
WHOLE = {
    "x_features": "x-features",
    "grad_cam": "Grad-CAM",
    "grad_cam_plus_plus": "Grad-CAM++",
    "guided_grad_cam": "Guided Grad-CAM",
    "layer_cam": "LayerCAM",
    "score_cam": "Score-CAM",
    "map_reader": "Heatmap reader",
}
"""Names with terms of their own: as in the literature, or as on the pages where study files differ."""


def format_probability(value: float) -> str:
    """Format a probability, one that would be rounded to nothing too: ``"36.5%"``, ``"< 0.1%"``."""
    return "< 0.1%" if 0 < value < 0.0005 else f"{value:.1%}"


def lower_first(text: str) -> str:
    """Write a text as part of a sentence, with its first letter small."""
    return text[:1].lower() + text[1:]


def upper_first(text: str) -> str:
    """Write a text as the beginning of a sentence, with its first letter large."""
    return text[:1].upper() + text[1:]


def format_name(name: str) -> str:
    """Format a registered name for display: ``"lrp_composite"`` -> ``"LRP composite"``; names of files stay."""
    if ":" in name:
        return name
    if name in WHOLE:
        return WHOLE[name]
    text = " ".join(SPELT.get(word, word) for word in name.split("_"))
    return upper_first(text)
