"""The same heatmaps by the libraries that users would take instead, with the same settings.

`PEERS` names, for each method, the peers and their builders: ``build(module, images, targets, settings) -> run``, where
``run()`` returns the heatmap (B, H, W) on the CPU if it should equal Foretell's, else None.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from core.network.device import chunk_size

Run = Callable[[], Tensor | None]
Build = Callable[[nn.Module, Tensor, list[int], dict[str, Any]], Run]
warnings.filterwarnings("ignore", module="captum")


def _captum(name: str, **options: Any) -> Build:
    """Build a gradient method of captum whose heatmap is summed over the channels."""

    def build(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:  # noqa: ARG001
        from captum import attr

        method = getattr(attr, name)(module)

        def run() -> Tensor:
            heatmap: Tensor = method.attribute(images.clone().requires_grad_(), target=targets, **options)
            return heatmap.detach().sum(1).cpu()

        return run

    return build


def _integrated(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:
    from captum.attr import IntegratedGradients

    method, chunk = IntegratedGradients(module), max(len(images), chunk_size(images[0]))

    def run() -> Tensor:
        options = {"n_steps": settings["steps"], "internal_batch_size": chunk}
        return method.attribute(images, target=targets, **options).detach().sum(1).float().cpu()

    return run


def _noise_tunnel(kind: str) -> Build:
    def build(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:
        from captum.attr import NoiseTunnel, Saliency

        method = NoiseTunnel(Saliency(module))

        def run() -> None:
            method.attribute(
                images, nt_type=kind, nt_samples=settings["samples"], nt_samples_batch_size=4, stdevs=0.5,
                target=targets, abs=False,
            )  # fmt: skip

        return run

    return build


def _gradient_shap(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:
    from captum.attr import GradientShap

    method = GradientShap(module)

    def run() -> None:
        references = torch.randn_like(images)
        method.attribute(images, references, n_samples=settings["samples"], target=targets)

    return run


def _guided_grad_cam(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:  # noqa: ARG001
    from captum.attr import GuidedGradCam

    method = GuidedGradCam(module, last_block(module))

    def run() -> None:
        method.attribute(images, target=targets, interpolate_mode="bilinear")

    return run


def _occlusion(chunked: bool) -> Build:
    def build(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:
        from captum.attr import Occlusion

        method, side, stride = Occlusion(module), settings["window"], settings["stride"]
        options = {"perturbations_per_eval": chunk_size(images[0])} if chunked else {}

        def run() -> None:
            with torch.no_grad():
                method.attribute(images, (3, side, side), (3, stride, stride), baselines=0.0, target=targets, **options)

        return run

    return build


def _cells(images: Tensor, grid: int) -> Tensor:
    """Number the cell of each pixel, (1, 1, H, W)."""
    height, width = images.shape[2:]
    rows, columns = (torch.arange(side, device=images.device) * grid // side for side in (height, width))
    return (rows[:, None] * grid + columns)[None, None]


def _perturbing(name: str, chunked: bool) -> Build:
    """Build LIME, KernelSHAP or Shapley sampling of captum over the same cells."""

    def build(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:
        from captum import attr

        method, mask = getattr(attr, name)(module), _cells(images, settings["grid"])
        samples = 2 * settings["pairs"] if "pairs" in settings else settings["samples"]
        options = {"perturbations_per_eval": chunk_size(images[0])} if chunked else {}

        def run() -> None:
            with torch.no_grad():
                for image, target in zip(images.split(1), targets, strict=True):
                    method.attribute(image, feature_mask=mask, target=target, n_samples=samples, **options)

        return run

    return build


def _grad_cam_package(name: str, **options: Any) -> Build:
    def build(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:
        import pytorch_grad_cam
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

        own = copy.deepcopy(module)  # it leaves hooks in the network
        layer = own.get_submodule(settings["layer"]) if "layer" in settings else last_block(own)
        reshape = {"VisionTransformer": _from_tokens, "SwinTransformer": _from_channels_last}.get(type(own).__name__)
        given = {"target_layers": [layer], "reshape_transform": reshape, **options}
        method = getattr(pytorch_grad_cam, name)(model=own, **given)

        def run() -> None:
            method(input_tensor=images, targets=[ClassifierOutputTarget(target) for target in targets])

        return run

    return build


def _zennit(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:  # noqa: ARG001
    from zennit.attribution import Gradient
    from zennit.composites import EpsilonPlusFlat
    from zennit.torchvision import ResNetCanonizer

    canonizers = [ResNetCanonizer()] if type(module).__name__ == "ResNet" else []
    own = copy.deepcopy(module)
    composite = EpsilonPlusFlat(canonizers=canonizers)

    def run() -> Tensor | None:
        with Gradient(own, composite) as attributor:
            with torch.no_grad():
                logits = own(images)
            start = torch.zeros_like(logits)
            start[range(len(targets)), targets] = logits[range(len(targets)), targets]
            _, relevance = attributor(images, start)
        return (
            relevance.sum(1).cpu() if canonizers else None
        )  # without a canonizer, batch norms are handled differently

    return run


def _lxt(module: nn.Module, images: Tensor, targets: list[int], settings: dict[str, Any]) -> Run:  # noqa: ARG001
    """Build lxt's relevance for torchvision's vision transformer, in which attention weights are constants (CP-LRP)."""
    own = copy.deepcopy(module)

    def run() -> None:
        if type(module).__name__ != "VisionTransformer":
            raise NotImplementedError("lxt's classes are those of torchvision's vision transformer")
        from zennit.composites import LayerMapComposite
        from zennit.rules import Gamma

        with _changed_by_lxt():
            composite = LayerMapComposite([(nn.Conv2d, Gamma(0.25)), (nn.Linear, Gamma(0.05))])
            composite.register(own)
            try:
                inputs = images.clone().requires_grad_()
                own(inputs)[range(len(targets)), targets].sum().backward()
            finally:
                composite.remove()

    return run


@contextlib.contextmanager
def _changed_by_lxt() -> Iterator[None]:
    """Change classes of PyTorch and zennit as lxt does, and change them back: the other peers use them too."""
    from lxt.efficient import monkey_patch, monkey_patch_zennit
    from torchvision.models import vision_transformer
    from zennit.core import BasicHook

    changed = (nn.GELU, nn.LayerNorm, nn.MultiheadAttention, BasicHook)
    kept = [(one, name, vars(one)[name]) for one in changed for name in ("forward", "backward") if name in vars(one)]
    try:
        monkey_patch(vision_transformer)
        monkey_patch_zennit()
        yield
    finally:
        for one, name, method in kept:
            setattr(one, name, method)


def _from_tokens(tokens: Tensor) -> Tensor:
    """Return the feature maps (B, C, h, w) of tokens (B, 1 + h w, C), the first of which is the class token's."""
    side = round((tokens.shape[1] - 1) ** 0.5)
    return tokens[:, 1:].unflatten(1, (side, side)).permute(0, 3, 1, 2)


def _from_channels_last(maps: Tensor) -> Tensor:
    return maps.permute(0, 3, 1, 2)


def last_block(module: nn.Module) -> nn.Module:
    """Find the last layer with spatial positions; of a vision transformer, one whose tokens still reach the logits."""
    if hasattr(module, "encoder"):
        return module.encoder.layers[-1].ln_1  # type: ignore[no-any-return, index, union-attr]
    return module.layer4[-1] if hasattr(module, "layer4") else module.features[-1]  # type: ignore[no-any-return, index, union-attr]


PEERS: dict[str, dict[str, Build]] = {
    "gradient": {"captum": _captum("Saliency", abs=False)},
    "input_x_gradient": {"captum": _captum("InputXGradient")},
    "integrated_gradients": {"captum": _integrated},
    "expected_gradients": {"captum": _gradient_shap},
    "smoothgrad": {"captum": _noise_tunnel("smoothgrad")},
    "vargrad": {"captum": _noise_tunnel("vargrad")},
    "deconvnet": {"captum": _captum("Deconvolution")},
    "guided_backpropagation": {"captum": _captum("GuidedBackprop")},
    "guided_grad_cam": {"captum": _guided_grad_cam},
    "lrp_composite": {"zennit": _zennit},
    "lrp_epsilon": {"captum": _captum("LRP")},
    "attn_lrp": {"lxt": _lxt},
    "deeplift": {"captum": _captum("DeepLift", baselines=0.0)},
    "grad_cam": {"pytorch-grad-cam": _grad_cam_package("GradCAM")},
    "grad_cam_plus_plus": {"pytorch-grad-cam": _grad_cam_package("GradCAMPlusPlus")},
    "layer_cam": {"pytorch-grad-cam": _grad_cam_package("LayerCAM")},
    "score_cam": {"pytorch-grad-cam": _grad_cam_package("ScoreCAM")},
    "occlusion": {"captum": _occlusion(chunked=False), "captum, batched": _occlusion(chunked=True)},
    "lime": {"captum": _perturbing("Lime", chunked=False), "captum, batched": _perturbing("Lime", chunked=True)},
    "kernel_shap": {
        "captum": _perturbing("KernelShap", chunked=False),
        "captum, batched": _perturbing("KernelShap", chunked=True),
    },
    "shapley_sampling": {
        "captum": _perturbing("ShapleyValueSampling", chunked=False),
        "captum, batched": _perturbing("ShapleyValueSampling", chunked=True),
    },
}
