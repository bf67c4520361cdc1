"""Names of methods, conditions and choices as people read them."""

from __future__ import annotations

SPELT = {
    **{
        word.lower(): word
        for word in ("LRP", "CAM", "MC", "RISE", "LIME", "SHAP", "DeepLIFT", "SmoothGrad", "VarGrad", "HSIC", "MACO")
    },
    "grad": "Grad",
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
WHOLE = {"x_features": "x-features", "map_reader": "Heatmap reader"}
"""Names with terms of their own: as in the literature, or as on the pages where study files differ."""


def format_name(name: str) -> str:
    """Format a registered name for display: ``"lrp_composite"`` -> ``"LRP composite"``; names of files stay."""
    if ":" in name:
        return name
    if name in WHOLE:
        return WHOLE[name]
    text = " ".join(SPELT.get(word, word) for word in name.split("_"))
    return text[:1].upper() + text[1:]
