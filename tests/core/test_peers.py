"""Class activation maps against pytorch-grad-cam, and relevance methods on the real networks."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from PIL import Image

from core.attribution.gradients.plain import input_x_gradient
from core.attribution.maps.cam import grad_cam, grad_cam_plus_plus, layer_cam
from core.attribution.relevance.deeplift import deeplift
from core.attribution.relevance.lrp import lrp_0, lrp_composite
from core.errors import ForetellError
from core.loading import imagenet_transforms, import_torchvision
from core.network.classifier import Classifier
from study.network.sources import open_classifier
from tests.core.test_lrp import resnet


@pytest.mark.parametrize(
    ("method", "name", "tolerance"),
    [(grad_cam, "GradCAM", 1e-4), (layer_cam, "LayerCAM", 1e-4), (grad_cam_plus_plus, "GradCAMPlusPlus", 1e-3)],
)
def test_agrees_with_pytorch_grad_cam_on_a_resnet(method, name, tolerance):
    """Its maps are scaled to [0, 1] by their own extremes and enlarged by OpenCV: so are ours here, from 7 x 7.

    It adds 1e-6 to the divisors of Grad-CAM++, which eq. 19 does not: with large gradients that is nothing.
    """
    import_torchvision()
    import pytorch_grad_cam
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    network = resnet("resnet18")
    with torch.no_grad():
        network.fc.weight.mul_(1000)
    images = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(3))
    classifier = Classifier(copy.deepcopy(network), imagenet_transforms, name="resnet18")
    found = method(classifier, images, [5, 7], layer="layer4").map
    theirs = getattr(pytorch_grad_cam, name)(model=network, target_layers=[network.layer4])
    expected = torch.from_numpy(theirs(input_tensor=images, targets=[ClassifierOutputTarget(k) for k in (5, 7)]))
    for mine, other in zip(found, expected, strict=True):
        correlation = np.corrcoef(mine.flatten().numpy(), other.flatten().numpy())[0, 1]
        assert correlation > 1 - tolerance


@pytest.mark.real
def test_relevance_on_real_networks(real):
    """MobileNetV2 (ImageNet) and ResNet-20 (CIFAR-10), trained, as their users wrote them."""
    photograph = sorted((real / "imagenet" / "images").rglob("*.JPEG"))[0]
    for source in ("imagenet/mobilenet_v2.py:build", "cifar10/resnet.py:build"):
        relus = "resnet" in source  # where a ReLU6 is full the gradient is 0, and relevance still passes
        classifier = open_classifier(str(real / source), real)
        with Image.open(photograph) as picture:
            images = classifier.preprocess(picture)[None]
        target = [int(classifier.logits(images).argmax())]
        assert abs(deeplift(classifier, images, target).certificates[0].completeness) < 1e-4
        composite = lrp_composite(classifier, images, target, bias="left_out").certificates[0]
        if relus:
            exact, plain = lrp_0(classifier, images, target), input_x_gradient(classifier, images, target)
            scale = float(plain.map.abs().max())
            torch.testing.assert_close(exact.map, plain.map, rtol=0, atol=1e-4 * scale)
            assert composite.conservation == pytest.approx(1, abs=1e-3)
            assert composite.warnings == ()
        else:  # units that are active by their bias alone: little reaches the picture, and that is said
            assert composite.conservation < 0.1
            assert "0.2% of the logit" in composite.warnings[0]
            with pytest.raises(ForetellError, match="lrp_0 overflows on mobilenet_v2"):
                lrp_0(classifier, images, target, bias="left_out")
