"""Families of heatmap methods, by what they do with the network."""

from __future__ import annotations

FAMILIES: dict[str, tuple[str, ...]] = {
    "Gradients": (
        "gradient",
        "input_x_gradient",
        "integrated_gradients",
        "expected_gradients",
        "smoothgrad",
        "vargrad",
        "deconvnet",
        "guided_backpropagation",
    ),
    "Relevance": (
        "lrp_0",
        "lrp_epsilon",
        "lrp_gamma",
        "lrp_alpha_beta",
        "lrp_z_plus",
        "lrp_composite",
        "attn_lrp",
        "taylor_decomposition",
        "deeplift",
        "deep_shap",
        "excitation_backpropagation",
        "contrastive_excitation",
    ),
    "Feature maps": ("cam", "grad_cam", "grad_cam_plus_plus", "guided_grad_cam", "layer_cam", "score_cam", "erasure"),
    "Attention": ("attention_rollout", "transformer_attribution"),
    "Perturbation": (
        "bayesian_teaching",
        "occlusion",
        "extremal_perturbation",
        "meaningful_perturbation",
        "prediction_difference",
        "rise",
        "sobol",
        "hsic",
    ),
    "Shapley values and surrogates": (
        "shapley_exact",
        "shapley_sampling",
        "kernel_shap",
        "lime",
        "anchors",
    ),
}
"""Each method of Foretell in one family: backward passes, redistributed relevance, activations and attention of layers,
changed images, and simple models of the network around the image."""
