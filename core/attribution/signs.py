"""The meaning of a heatmap's two colours, by method: only for some methods are values evidence for a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Sign:
    """Meaning of values above and below a heatmap's zero; ``{}`` is the class. None: there are no values below.

    ``kind`` ends the keys of the texts that explain the colours to participants; it is empty for evidence.
    """

    above: str
    below: str | None
    kind: str = ""

    def words(self, category: str) -> str:
        """Return the meaning of the colours, e.g. ``"Orange: for fish. Blue: against it."``."""
        below = "" if self.below is None else f" Blue: {self.below.format(category)}."
        return f"Orange: {self.above.format(category)}.{below}"


EVIDENCE = Sign("for {}", "against {}")
SUPPORT = Sign("for {}; this method shows nothing against it", None, "_support")
SLOPE = Sign("a higher pixel value raises the score of {}", "a higher pixel value lowers it", "_slope")
MODIFIED = Sign(
    "positive value of the modified gradient, not evidence for {}",
    "negative value of it, not evidence against it",
    "_modified",
)

SIGNS = {
    "gradient": SLOPE,
    "smoothgrad": SLOPE,
    "vargrad": Sign("the gradient of {} varies under noise, in either direction", None, "_varying"),
    "deconvnet": MODIFIED,
    "guided_backpropagation": MODIFIED,
    "guided_grad_cam": MODIFIED,
    "lrp_z_plus": SUPPORT,
    "excitation_backpropagation": SUPPORT,
    "contrastive_excitation": Sign("more for {} than for everything else", "more for everything else", "_contrast"),
    "grad_cam": SUPPORT,
    "grad_cam_plus_plus": SUPPORT,
    "layer_cam": SUPPORT,
    "score_cam": SUPPORT,
    "attention_rollout": Sign("what the network attends to", None, "_attended"),
    "transformer_attribution": SUPPORT,
    "sobol": Sign("how much dimming this place changes the score of {}, in either direction", None, "_influence"),
    "hsic": Sign("hiding this place changes the score of {}, in either direction", None, "_influence"),
    "anchors": Sign("kept by the rule that fixes the prediction {}", None, "_enough"),
    "extremal_perturbation": Sign("part of the area that alone keeps {}", None, "_enough"),
    "meaningful_perturbation": Sign("part of what has to go to lose {}", None, "_needed"),
}
"""Methods whose values mean something other than evidence for and against the class."""


STEEPNESS = Sign("how much changing this place changes the score of {}, in either direction", None, "_influence")
NOTHING: Mapping[str, Any] = MappingProxyType({})


def sign_of(method: str, parameters: Mapping[str, Any]) -> Sign:
    """Return what the values of a method mean under the ``parameters`` that it was given."""
    if method == "gradient" and parameters.get("channels") == "largest":
        return STEEPNESS
    own = SIGNS.get(method, EVIDENCE)
    return EVIDENCE if own is SUPPORT and parameters.get("sign") == "signed" else own
