"""Token grids and channels-last maps: the heatmap lies where the evidence is, whoever wrote the network."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from core.attribution import METHODS
from core.attribution.maps.erasure import channel_importance
from core.attribution.places.activations import activation_and_gradient
from core.attribution.places.layout import Layout
from core.attribution.places.place import find_layout, read_maps, select_place
from core.errors import ForetellError
from core.layers.layers import maps_of
from core.network.classifier import Classifier
from core.units.unit import Unit, find_layer_shape
from tests.core.tokens import PATCH, SIDES, hf_vit, planted, red_patch, timm_swin, timm_vit, torchvision_vit

LAYERED = ("grad_cam", "grad_cam_plus_plus", "layer_cam", "score_cam", "erasure")


@pytest.mark.parametrize("ends", [(1, 0), (2, 0), (5, 0), (0, 1)])
@pytest.mark.parametrize("place", [(0, 0), (0, 4), (2, 1)])
def test_the_heatmap_peaks_at_the_only_patch_that_decides(ends: tuple[int, int], place: tuple[int, int]) -> None:
    """A prefix that is off by one, exchanged sides, or the class token's own value would move the peak."""
    classifier, image = planted(*ends), red_patch(*place)
    assert select_place(classifier, "").layout == Layout("tokens", (3, 5), *ends)
    for method in LAYERED:
        found = METHODS[method](classifier, image, [0]).map[0]
        row, column = np.unravel_index(int(found.argmax()), SIDES)
        assert (row // PATCH, column // PATCH) == place, method


def test_grad_cam_of_the_planted_patch_in_closed_form() -> None:
    """Logit = mean of the 16 tokens' first channel: gradient 1/16 each, and the patch's activation is 4 - .5."""
    read = read_maps(planted(), red_patch(2, 1), torch.tensor([0]), "block")
    expected = torch.zeros(1, 6, 3, 5)
    expected[0, 0, 2, 1] = 3.5
    torch.testing.assert_close(read.activation, expected)
    torch.testing.assert_close(read.gradient[0, 0], torch.full((3, 5), 1 / 16))


@pytest.mark.parametrize(
    ("make", "layer", "layout"),
    [
        (torchvision_vit, "encoder.layers.encoder_layer_1", Layout("tokens", (4, 4), 1)),
        (timm_vit, "blocks.1", Layout("tokens", (4, 6), 1)),
        (lambda: timm_vit(reg_tokens=4), "blocks.1", Layout("tokens", (4, 6), 5)),
        (lambda: timm_vit(global_pool="avg", class_token=False, fc_norm=False), "norm", Layout("tokens", (4, 6))),
        (hf_vit, "network.vit.layers.1", Layout("tokens", (4, 4), 1)),
        (timm_swin, "norm", Layout("channels_last", (8, 8))),
    ],
)
def test_the_layer_and_its_layout(make: Callable[[], Classifier], layer: str, layout: Layout) -> None:
    """The last layer whose places are read: not the class token's last block, where every heatmap would be 0."""
    pytest.importorskip("timm")
    pytest.importorskip("transformers")
    assert select_place(make(), "") == (layer, layout)


def test_two_tokens_before_the_places_of_a_distilled_deit() -> None:
    timm = pytest.importorskip("timm")
    from tests.core.tokens import wrap

    narrow = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2, "num_classes": 5}
    deit = wrap(timm.models.deit.VisionTransformerDistilled(**narrow), (32, 32))
    assert select_place(deit, "") == ("blocks.0", Layout("tokens", (4, 4), 2))


@pytest.mark.parametrize(
    ("make", "layer"),
    [(timm_vit, "blocks.1"), (timm_vit, "blocks.2.norm1"), (torchvision_vit, "encoder.layers.encoder_layer_2.ln_1"),
     (timm_swin, "layers.1.blocks.0"), (timm_swin, "norm")],
)  # fmt: skip
@pytest.mark.parametrize(("method", "theirs"), [("grad_cam", "GradCAM"), ("layer_cam", "LayerCAM")])
def test_agrees_with_pytorch_grad_cam_and_its_reshape_transform(
    make: Callable[[], Classifier], layer: str, method: str, theirs: str
) -> None:
    """Its users write the layout of the tokens by hand; its maps are scaled to [0, 1] by their own extremes."""
    pytest.importorskip("timm")
    import pytorch_grad_cam
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    classifier = make()
    images = torch.randn(2, *classifier.input_shape, generator=torch.Generator().manual_seed(3))
    with classifier.exclusive() as module:
        network = copy.deepcopy(module)
    height, width = (side // 8 for side in classifier.input_shape[1:])

    def to_maps(output: Tensor) -> Tensor:
        if output.ndim == 3:
            output = output[:, 1:].reshape(len(output), height, width, -1)
        return output.permute(0, 3, 1, 2)

    cam = getattr(pytorch_grad_cam, theirs)(
        model=network, target_layers=[network.get_submodule(layer)], reshape_transform=to_maps
    )
    expected = torch.from_numpy(cam(input_tensor=images, targets=[ClassifierOutputTarget(k) for k in (1, 3)]))
    found = METHODS[method](classifier, images, [1, 3], layer=layer).map
    for mine, other in zip(found, expected, strict=True):
        assert mine.std() > 0
        assert np.corrcoef(mine.flatten().numpy(), other.flatten().numpy())[0, 1] > 1 - 1e-4


@pytest.mark.parametrize("method", ["grad_cam", "layer_cam", "score_cam", "erasure"])
@pytest.mark.parametrize("make", [timm_vit, timm_swin])
def test_every_image_of_a_batch_has_its_own_heatmap(method: str, make: Callable[[], Classifier]) -> None:
    """The axis of the images is not taken for one of places."""
    pytest.importorskip("timm")
    classifier = make()
    images = torch.randn(2, *classifier.input_shape, generator=torch.Generator().manual_seed(4))
    parameters = {} if method == "erasure" else {"sign": "signed"}
    together = METHODS[method](classifier, images, [1, 2], **parameters).map
    alone = METHODS[method](classifier, images[1:], [2], **parameters).map
    assert float(together.std()) > 0
    torch.testing.assert_close(together[1:], alone, rtol=1e-3, atol=1e-5 * float(together.abs().max()))


def test_a_layer_whose_places_are_not_read_is_said_by_name() -> None:
    """The last block of a class-token network: its heatmap would be 0 and look like a finding."""
    pytest.importorskip("timm")
    with pytest.raises(ForetellError, match=r"Nothing of the places in layer 'blocks\.2' of timm vit reaches"):
        METHODS["grad_cam"](timm_vit(), torch.randn(1, 3, 32, 48), [0], layer="blocks.2")


# Channels and units


@pytest.mark.parametrize(("make", "layer", "axis"), [(timm_vit, "blocks.1", 2), (timm_swin, "layers.0", 3)])
def test_channels_of_tokens_are_the_last_axis(make: Callable[[], Classifier], layer: str, axis: int) -> None:
    """Erased one by one by a hook of its own: the second axis of these layers is a token or a row."""
    pytest.importorskip("timm")
    classifier = make()
    image = torch.randn(1, *classifier.input_shape, generator=torch.Generator().manual_seed(5))
    found = channel_importance(classifier, image, [1], layer)

    def surprise(channel: int | None) -> float:
        def erase(_: nn.Module, __: object, output: Tensor) -> Tensor:
            return output if channel is None else output.index_fill(axis, torch.tensor([channel]), 0)

        with classifier.exclusive() as module, torch.no_grad():
            handle = module.get_submodule(layer).register_forward_hook(erase)
            logits = module(image)
            handle.remove()
        return -float(logits.double().log_softmax(1)[0, 1])

    whole = surprise(None)
    expected = torch.tensor([(surprise(k) - whole) / whole for k in range(len(found))], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def test_maps_of_a_layer_are_channels_first_whatever_the_network() -> None:
    """Dissection and probes read them: a token's number must not be taken for a channel's."""
    pytest.importorskip("timm")
    vit, swin = timm_vit(), timm_swin()
    images = torch.randn(2, 3, 32, 48, generator=torch.Generator().manual_seed(6))
    raw = activation_and_gradient(vit, images, torch.zeros(2, dtype=torch.long), "blocks.1").activation
    found = maps_of(vit, images, "blocks.1")
    assert torch.allclose(found[1, 7, 2, 3], raw[1, 1 + 2 * 6 + 3, 7], atol=1e-5)
    assert find_layer_shape(swin, Unit(0, "norm")) == (32, 8, 8)
    assert find_layout(vit, "head") is None
    assert find_layer_shape(vit, Unit(0, "head")) == (5,)
