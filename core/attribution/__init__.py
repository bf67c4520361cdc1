"""Heatmaps. `METHODS` names every method: adding one is one file (or function) here and one line.

Installed packages add theirs under the entry-point group ``foretell.methods``; a file of one's own, a folder of
finished heatmaps and a network's own explanation are opened by `core.attribution.outside.opening.open_method`.

Each method is ``method(classifier, images, targets, *, generator, progress, **parameters) -> Explanation`` with
images (B, C, H, W) in the network's input space and one target class index per image.
"""

from core.registry import Registry

METHODS = Registry(
    "method",
    {
        "gradient": "core.attribution.gradients.plain:gradient",
        "input_x_gradient": "core.attribution.gradients.plain:input_x_gradient",
        "integrated_gradients": "core.attribution.gradients.plain:integrated_gradients",
        "expected_gradients": "core.attribution.gradients.expected_gradients:expected_gradients",
        "smoothgrad": "core.attribution.gradients.smoothgrad:smoothgrad",
        "vargrad": "core.attribution.gradients.smoothgrad:vargrad",
        "deconvnet": "core.attribution.gradients.modified:deconvnet",
        "guided_backpropagation": "core.attribution.gradients.modified:guided_backpropagation",
        "lrp_0": "core.attribution.relevance.lrp:lrp_0",
        "lrp_epsilon": "core.attribution.relevance.lrp:lrp_epsilon",
        "lrp_gamma": "core.attribution.relevance.lrp:lrp_gamma",
        "lrp_alpha_beta": "core.attribution.relevance.lrp:lrp_alpha_beta",
        "lrp_z_plus": "core.attribution.relevance.lrp:lrp_z_plus",
        "lrp_composite": "core.attribution.relevance.lrp:lrp_composite",
        "attn_lrp": "core.attribution.relevance.attn_lrp:attn_lrp",
        "taylor_decomposition": "core.attribution.relevance.taylor:taylor_decomposition",
        "deeplift": "core.attribution.relevance.deeplift:deeplift",
        "deep_shap": "core.attribution.relevance.deeplift:deep_shap",
        "excitation_backpropagation": "core.attribution.relevance.excitation:excitation_backpropagation",
        "contrastive_excitation": "core.attribution.relevance.excitation:contrastive_excitation",
        "cam": "core.attribution.maps.cam:cam",
        "grad_cam": "core.attribution.maps.cam:grad_cam",
        "grad_cam_plus_plus": "core.attribution.maps.cam:grad_cam_plus_plus",
        "guided_grad_cam": "core.attribution.gradients.modified:guided_grad_cam",
        "layer_cam": "core.attribution.maps.cam:layer_cam",
        "score_cam": "core.attribution.maps.score_cam:score_cam",
        "attention_rollout": "core.attribution.maps.attention_rollout:attention_rollout",
        "transformer_attribution": "core.attribution.maps.transformer_attribution:transformer_attribution",
        "bayesian_teaching": "core.attribution.perturbation.expected_mask:bayesian_teaching",
        "occlusion": "core.attribution.perturbation.occlusion:occlusion",
        "erasure": "core.attribution.maps.erasure:erasure",
        "extremal_perturbation": "core.attribution.perturbation.extremal_perturbation:extremal_perturbation",
        "meaningful_perturbation": "core.attribution.perturbation.meaningful_perturbation:meaningful_perturbation",
        "prediction_difference": "core.attribution.perturbation.prediction_difference:prediction_difference",
        "rise": "core.attribution.perturbation.rise:rise",
        "sobol": "core.attribution.perturbation.sobol:sobol",
        "hsic": "core.attribution.perturbation.hsic:hsic",
        "shapley_exact": "core.attribution.surrogates.shapley:shapley_exact",
        "shapley_sampling": "core.attribution.surrogates.shapley:shapley_sampling",
        "kernel_shap": "core.attribution.surrogates.shapley:kernel_shap",
        "lime": "core.attribution.surrogates.lime:lime",
        "anchors": "core.attribution.surrogates.anchors:anchors",
    },
    "foretell.methods",
)
