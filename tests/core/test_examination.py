"""Networks whose output is not logits are named when they are loaded, each by its cause."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import torch
from PIL import Image

from core.attribution import METHODS
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.sources import load

FILE = '''
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, after, classes=4):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, classes),
        )
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.3)
        self.after = after

    def forward(self, x):
        return self.after(self.body(x))


class Several(nn.Module):
    """Two heads, and their mean, as distilled vision transformers have."""

    def __init__(self):
        super().__init__()
        self.body = Net(lambda z: z, 8).body
        self.one, self.other = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        features = self.body(x)
        return (self.one(features) + self.other(features)) / 2


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net(lambda z: z).half()

    def forward(self, x):
        return self.net(x.half()).float()


class Numpy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net(lambda z: z)

    def forward(self, x):
        return self.net(torch.from_numpy(np.clip(x.numpy(), 0, 1)))


def transforms(image):
    return torch.from_numpy(np.array(image.resize((16, 16)))).permute(2, 0, 1).float() / 255


def plain():
    return Net(lambda z: z)


def untracked():
    layers = plain().body
    return nn.Sequential(layers[:4], nn.BatchNorm2d(8, track_running_stats=False), layers[4:])


def build():
    return {build}
'''


def network(folder: Path, build: str) -> Classifier:
    (folder / "mine.py").write_text(FILE.replace("{build}", build))
    return load(f"{folder / 'mine.py'}:build")


REFUSED = {
    "probabilities": ("Net(lambda z: z.softmax(1))", r"returns probabilities \(they sum to 1\)"),
    "one logit": ("Net(lambda z: z[:, :1])", "returns one number for an image"),
    "nan": ("Net(lambda z: z / z.clamp(max=0).detach() * 0)", "returns NaN or infinite logits"),
    "random": ("Net(lambda z: F.dropout(z, 0.5))", "random in eval mode"),
    "batch": ("Net(lambda z: (z - z.mean(0)) / (z.std(0, correction=0) + 1))", "normalises by the batch in eval mode"),
    "batch norm": ("untracked()", "by the batch"),
    "raises": ("1 / 0", r"mine\.py:build failed: ZeroDivisionError: division by zero\. Correct that function"),
    "double": ("plain().double()", r"Its weights are float64 and inputs are float32: return network\.float\(\)"),
    "half": ("plain().half()", r"Its weights are float16 and inputs are float32: return network\.float\(\)"),
}  # fmt: skip


@pytest.mark.parametrize(("build", "sentence"), REFUSED.values(), ids=REFUSED)
def test_an_output_that_is_no_logits_is_refused_by_name(tmp_path: Path, build: str, sentence: str) -> None:
    with pytest.raises(ForetellError, match=sentence):
        network(tmp_path, build)


def test_float_is_a_remedy_that_works(tmp_path: Path) -> None:
    assert network(tmp_path, "plain().double().float()").warnings == ()


def test_outputs_of_separate_labels_are_warned_of_on_every_map(tmp_path: Path) -> None:
    classifier = network(tmp_path, "Net(lambda z: z.sigmoid())")
    inputs = classifier.preprocess(Image.effect_noise((16, 16), 60).convert("RGB"))[None]
    (certificate,) = METHODS["gradient"](classifier, inputs, [0]).certificates
    assert "probabilities of separate labels" in certificate.warnings[0]


@pytest.mark.parametrize("build", ["plain()", "Net(lambda z: z.log_softmax(1))", "Several()", "Half()", "Numpy()"])
def test_what_returns_logits_is_loaded_without_a_word(tmp_path: Path, build: str) -> None:
    """Logarithms of probabilities are logits: the softmax gives the probabilities back."""
    assert network(tmp_path, build).warnings == ()


def test_the_built_in_network_is_without_warnings() -> None:
    assert load("data/scenes/classifier.py:build").warnings == ()


QUICK = {"rise": {"samples": 32}, "occlusion": {}, "cam": {}, "gradient": {}, "integrated_gradients": {"steps": 4},
         "guided_backpropagation": {}, "deconvnet": {}, "lrp_epsilon": {}, "taylor_decomposition": {},
         "excitation_backpropagation": {},
         "grad_cam": {}, "score_cam": {}, "erasure": {}, "deeplift": {}, "guided_grad_cam": {}}  # fmt: skip
ODD = {
    "TorchScript": "torch.jit.script(plain().body.eval())",
    "traced": "torch.jit.trace(plain().eval(), torch.rand(1, 3, 16, 16))",
    "two heads": "Several()",
    "half inside": "Half()",
    "numpy inside": "Numpy()",
    "quantised": "torch.ao.quantization.quantize_dynamic(plain(), {nn.Linear}, dtype=torch.qint8)",
}


def quantised() -> None:
    """Choose an engine for quantised layers, or skip."""
    engines = [name for name in ("fbgemm", "qnnpack") if name in torch.backends.quantized.supported_engines]
    if not engines:
        pytest.skip("torch without quantised layers")
    torch.backends.quantized.engine = engines[0]


@pytest.mark.parametrize("build", ODD.values(), ids=ODD)
def test_a_method_that_cannot_says_so_in_a_sentence(tmp_path: Path, build: str) -> None:
    """Every one either gives a map or raises `ForetellError`; those that only ask for predictions give one."""
    quantised()
    classifier = network(tmp_path, build)
    inputs = classifier.preprocess(Image.effect_noise((16, 16), 60).convert("RGB"))[None]
    made, said = [], []
    for method, parameters in QUICK.items():
        try:
            heatmap = METHODS[method](classifier, inputs, [1], **parameters).map
            assert torch.isfinite(heatmap).all()
            assert heatmap.any(), method  # no gradient came back, and nobody said so
            made.append(method)
        except ForetellError as refusal:
            said.append(str(refusal))
    assert {"rise", "occlusion"} <= set(made)
    for read in (lambda: classifier.head, lambda: classifier.features(inputs)):
        with contextlib.suppress(ForetellError):
            read()
    assert all(sentence.endswith(".") for sentence in said)


def test_two_quantised_networks_have_two_fingerprints(tmp_path: Path) -> None:
    """Their weights are not among the tensors of the state, but within what it holds."""
    quantised()
    linear = [torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 4)) for _ in range(2)]
    networks = [torch.ao.quantization.quantize_dynamic(one, {torch.nn.Linear}, dtype=torch.qint8) for one in linear]
    names = {Classifier(one, lambda _: torch.zeros(3, 4, 4), name="quantised").fingerprint for one in networks}
    assert len(names) == 2
