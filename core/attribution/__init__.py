"""Heatmaps. `METHODS` names every method: adding one is one file (or function) here and one line.

Installed packages add theirs under the entry-point group ``foretell.methods``; a file of one's own, a folder of
finished heatmaps and a network's own explanation are opened by `core.attribution.opening.open_method`.

Each method is ``method(classifier, images, targets, *, generator, progress, **parameters) -> Explanation`` with
images (B, C, H, W) in the network's input space and one target class index per image.
"""

from core.registry import Registry

METHODS = Registry(
    "method",
    {
        "gradient": "core.attribution.gradients:gradient",
        "input_x_gradient": "core.attribution.gradients:input_x_gradient",
        "integrated_gradients": "core.attribution.gradients:integrated_gradients",
        "expected_gradients": "core.attribution.expected_gradients:expected_gradients",
        "smoothgrad": "core.attribution.smoothgrad:smoothgrad",
        "vargrad": "core.attribution.smoothgrad:vargrad",
        "deconvnet": "core.attribution.modified:deconvnet",
        "guided_backpropagation": "core.attribution.modified:guided_backpropagation",
        "lrp_0": "core.attribution.lrp:lrp_0",
        "lrp_epsilon": "core.attribution.lrp:lrp_epsilon",
        "lrp_gamma": "core.attribution.lrp:lrp_gamma",
        "lrp_alpha_beta": "core.attribution.lrp:lrp_alpha_beta",
        "lrp_z_plus": "core.attribution.lrp:lrp_z_plus",
        "lrp_composite": "core.attribution.lrp:lrp_composite",
        "attn_lrp": "core.attribution.attn_lrp:attn_lrp",
        "taylor_decomposition": "core.attribution.taylor:taylor_decomposition",
        "deeplift": "core.attribution.deeplift:deeplift",
        "deep_shap": "core.attribution.deeplift:deep_shap",
        "excitation_backpropagation": "core.attribution.excitation:excitation_backpropagation",
        "contrastive_excitation": "core.attribution.excitation:contrastive_excitation",
        "cam": "core.attribution.cam:cam",
        "grad_cam": "core.attribution.cam:grad_cam",
        "grad_cam_plus_plus": "core.attribution.cam:grad_cam_plus_plus",
        "guided_grad_cam": "core.attribution.modified:guided_grad_cam",
        "layer_cam": "core.attribution.cam:layer_cam",
        "score_cam": "core.attribution.score_cam:score_cam",
        "attention_rollout": "core.attribution.attention_rollout:attention_rollout",
        "transformer_attribution": "core.attribution.transformer_attribution:transformer_attribution",
        "bayesian_teaching": "core.attribution.expected_mask:bayesian_teaching",
        "occlusion": "core.attribution.occlusion:occlusion",
        "erasure": "core.attribution.erasure:erasure",
        "extremal_perturbation": "core.attribution.extremal_perturbation:extremal_perturbation",
        "meaningful_perturbation": "core.attribution.meaningful_perturbation:meaningful_perturbation",
        "prediction_difference": "core.attribution.prediction_difference:prediction_difference",
        "rise": "core.attribution.rise:rise",
        "sobol": "core.attribution.sobol:sobol",
        "hsic": "core.attribution.hsic:hsic",
        "shapley_exact": "core.attribution.shapley:shapley_exact",
        "shapley_sampling": "core.attribution.shapley:shapley_sampling",
        "kernel_shap": "core.attribution.shapley:kernel_shap",
        "lime": "core.attribution.lime:lime",
        "anchors": "core.attribution.anchors:anchors",
    },
    "foretell.methods",
)
