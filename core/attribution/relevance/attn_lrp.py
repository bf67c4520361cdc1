"""AttnLRP: layer-wise relevance propagation that also passes through the softmax of attention.

Achtibat et al. 2024 (arXiv:2402.05602).
"""

from __future__ import annotations

from core.attribution.cost import gradients
from core.attribution.method import Query, heatmap_method
from core.attribution.records import Family
from core.attribution.relevance.lrp import Bias, explain_by_relevance
from core.attribution.relevance.network import Composite
from core.attribution.relevance.rules import Epsilon, Gamma, Rule
from core.errors import ForetellError
from core.types import Explanation


@heatmap_method(family=Family.RELEVANCE, cost=gradients())
def attn_lrp(
    query: Query, *, dense: float = 0.05, convolution: float = 0.25, epsilon: float = 1e-6, bias: Bias = "absorbs"
) -> Explanation:
    """Propagate relevance back through a transformer, through its attention weights too, not only through the values.

    Achtibat et al. 2024 (arXiv:2402.05602): the softmax passes on R_j = x_j (R_j - s_j sum_k R_k) (proposition 3.1),
    products of two activations give half to each (3.3), layer norms and activations pass it on (3.4). A network
    without attention gets LRP-gamma.

    Parameters
    ----------
    dense
        Gamma of linear layers: contributions of the output's sign weigh 1 + gamma times as much. The default is the
        paper's for ViT; 0 is LRP-epsilon.
    convolution
        Gamma of convolutions: contributions of the output's sign weigh 1 + gamma times as much. The default is the
        paper's for ViT; 0 is LRP-epsilon.
    epsilon
        Number by which sums are moved away from 0 before relevance is divided by them, in layers with a gamma of 0 and
        in sums without weights.
    """
    if min(dense, convolution, epsilon) < 0:
        raise ForetellError(f"dense={dense}, convolution={convolution}, epsilon={epsilon}: give 0 or more.")
    rules: list[Rule] = [Gamma(gamma) if gamma else Epsilon(epsilon) for gamma in (dense, convolution)]
    composite = Composite(
        rules[0], rules[1], other=Epsilon(epsilon), bias_absorbs=bias == "absorbs", through_softmax=True
    )
    known = {"dense": dense, "convolution": convolution, "epsilon": epsilon, "bias": bias}
    return explain_by_relevance(query, composite, known)
