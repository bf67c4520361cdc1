"""Methods that Foretell did not make: a file's function, a network's own; checked, certified, and shut in."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from core.attribution import METHODS
from core.attribution.outside.external import digest_of
from core.attribution.outside.opening import open_method
from core.errors import ForetellError
from core.faithfulness.randomisation import cascading_randomisation
from core.faithfulness.sensitivity import max_sensitivity
from core.network.classifier import Classifier
from core.parameters import list_parameters, parse_parameters
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.test_contracts import assert_same, snapshot

MINE = '''
import random
from typing import Literal
import numpy as np
import torch
from core.attribution.method import heatmap_method

def explain(model, images, targets, *, power: int = 1, sign: Literal["both", "positive"] = "both", scale=1.0):
    """Gradient times input. More words."""
    images.requires_grad_()
    model(images.clone()).gather(1, targets[:, None]).sum().backward()
    maps = (images.grad * images).sum(1) ** power * scale
    return maps.clamp(min=0) if sign == "positive" else maps

def meddle(model, images, targets):
    model.train()
    for module in model.modules():
        module.register_forward_hook(lambda *_: None)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    images.add_(5)
    return torch.ones(len(images), *images.shape[2:])

def draw(model, images, targets):
    noise = np.random.rand(*images.shape[2:]) + random.random()
    return torch.rand(len(images), *images.shape[2:]) + torch.from_numpy(noise)

@heatmap_method
def declared(query, *, times: float = 2.0):
    """Ones."""
    return query.explain(torch.full((len(query.inputs), *query.inputs.shape[2:]), times), parameters={"times": times})

def short(model, images): return images
def channels(model, images, targets): return images
def holes(model, images, targets): return images.sum(1) * float("nan")
def words(model, images, targets): return [["a"]]
def raises(model, images, targets): raise KeyError("no layer\\nof that name")
def leaves(model, images, targets): raise SystemExit("bye")
def texts(model, images, targets): return np.full((1, *images.shape[2:]), "a")
def odd(model, images, targets, layers=()): return images
@heatmap_method
def nothing(query): return None
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("methods")
    (folder / "mine.py").write_text(MINE)
    (folder / "broken.py").write_text("import numpy as np\nraise ValueError('half written')\n")
    return folder


def call(folder, name, images=None, **parameters):
    images = pictures(3) if images is None else images
    return open_method(name, folder)(awkward(), images, list(range(len(images))), **parameters)


def test_a_plain_function_is_explained_and_certified(folder):
    """Oracle: the same method written here independently. Catches a wrong image, class or sign, and a lost origin."""
    found, expected = call(folder, "mine.py:explain"), METHODS["input_x_gradient"](awkward(), pictures(3), [0, 1, 2])
    torch.testing.assert_close(found.map, expected.map, rtol=1e-4, atol=1e-6)
    sha256 = hashlib.sha256((folder / "mine.py").read_bytes()).hexdigest()
    for one, theirs in zip(found.certificates, expected.certificates, strict=True):
        assert (one.method, one.origin) == ("mine.py:explain", {"file": "mine.py", "sha256": sha256})
        assert (one.target, one.fingerprint) == (theirs.target, theirs.fingerprint)
        assert one.probability == pytest.approx(theirs.probability)
        assert str(folder) not in str(one.as_dict())


def test_parameters_of_a_plain_function_are_its_further_arguments(folder):
    """Catches parameters that no form or command line could offer, or that do not arrive."""
    method = open_method("mine.py:explain", folder)
    assert [(p.name, p.kind, p.default, p.choices) for p in list_parameters(method)] == [
        ("power", int, 1, None),
        ("sign", str, "both", ("both", "positive")),
        ("scale", float, 1.0, None),
    ]
    given = parse_parameters(method, {"power": "2", "scale": "3"})
    found = call(folder, "mine.py:explain", **given)
    torch.testing.assert_close(found.map, 3 * call(folder, "mine.py:explain").map ** 2)
    assert found.certificates[0].parameters == {"power": 2, "scale": 3.0}
    with pytest.raises(ForetellError, match=r"mine\.py:explain has no parameter 'powr'. Did you mean 'power'"):
        parse_parameters(method, {"powr": 2})


def test_a_method_of_the_decorator_is_called_as_one(folder):
    found = call(folder, "mine.py:declared", times=3.0)
    assert torch.equal(found.map, torch.full((3, SIDE, SIDE), 3.0))
    assert found.certificates[0].method == "mine.py:declared"
    assert found.certificates[0].origin["file"] == "mine.py"


def test_a_function_that_meddles_changes_nothing(folder):
    """Catches user code that trains, hooks or overwrites the network, or the caller's images."""
    classifier, images = awkward(), pictures(2)
    with classifier.exclusive() as module:
        before, given = snapshot(module), images.clone()
        open_method("mine.py:meddle", folder)(classifier, images, [0, 1])
        assert_same(before, snapshot(module))
    assert torch.equal(images, given)


def test_random_draws_are_of_the_seed_alone(folder):
    """Catches heatmaps that depend on the rest of the batch, and a run that changes everybody's random numbers."""
    together = call(folder, "mine.py:draw").map
    assert torch.equal(together[2], call(folder, "mine.py:draw", pictures(3)[:1]).map[0])
    states = random.getstate(), torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    other = call(folder, "mine.py:draw", generator=torch.Generator().manual_seed(9)).map
    assert not torch.equal(together, other)
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert (np.random.get_state()[1] == states[2]).all()  # noqa: NPY002


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.py:explain", r"There is no file .*gone\.py\. Give"),
        ("mine.py", r"'mine\.py' does not name a function\. Give FILE\.py:function"),
        ("mine.py:explian", r"mine\.py has no function 'explian'. It defines: .*explain"),
        ("broken.py:explain", r"broken\.py failed while it was read: ValueError: half written"),
        ("mine.py:short", r"mine\.py:short takes \(model, images\)\. A method is a function \(model, images, targets"),
        ("mine.py:odd", r"The parameter 'layers' of mine\.py:odd is not an int"),
        ("mine.py:channels", r"mine\.py:channels returned shape \(1, 3, 12, 12\), not \(1, 12, 12\)"),
        ("mine.py:holes", r"mine\.py:holes returned NaN or infinite values for image 1 of 3\. Correct"),
        ("mine.py:words", r"mine\.py:words returned list; it must return an array"),
        ("mine.py:texts", r"mine\.py:texts returned values that are not numbers"),
        ("mine.py:raises", r"mine\.py:raises failed: KeyError: 'no layer"),
        ("mine.py:leaves", r"mine\.py:leaves failed: SystemExit: bye"),
        ("mine.py:nothing", r"mine\.py:nothing returned NoneType; return what query\.explain"),
        ("own", r"Awkward has no explain\(images, targets\) of its own"),
        ("heatmaps:gone", r"There is no folder .*gone\. Give the folder"),
        ("grad_camm", r"Unknown method 'grad_camm'. Did you mean 'grad_cam'"),
    ],
)
def test_what_is_wrong_with_a_method_is_one_sentence(folder, name, sentence):
    """Catches a stack trace of a user's code, and a heatmap of the wrong shape or with NaN that is drawn."""
    with pytest.raises(ForetellError, match=sentence) as refused:
        call(folder, name)
    assert "\n" not in str(refused.value)


def test_a_name_of_a_file_is_opened_by_nothing_but_open_method(folder, monkeypatch):
    """Catches a registry, or a measure that takes a method's name, that would execute a file of a link's choice."""
    monkeypatch.chdir(folder)
    given = (awkward(), pictures(1), [0], "mine.py:explain")
    assert "mine.py:explain" not in METHODS
    for run in (cascading_randomisation, max_sensitivity, lambda *_: METHODS["mine.py:explain"]):
        with pytest.raises(ForetellError, match=r"Unknown method 'mine\.py:explain'"):
            run(*given)


def test_measures_of_a_method_take_one_from_outside(folder):
    """Oracle: the registered method that the file repeats. Catches another network, image or seed."""
    given, mine = (awkward(), pictures(2), [0, 1]), open_method("mine.py:explain", folder)
    ours, theirs = (cascading_randomisation(*given, method) for method in (mine, "input_x_gradient"))
    assert ours.method == "mine.py:explain"
    torch.testing.assert_close(ours.correlations, theirs.correlations, rtol=1e-3, atol=1e-3)
    ours, theirs = (max_sensitivity(*given, method, samples=3) for method in (mine, "input_x_gradient"))
    torch.testing.assert_close(ours.distances, theirs.distances, rtol=1e-3, atol=1e-5)


def test_a_network_explains_itself(tmp_path):
    """Closed form: the mean of its channels, plus its class. Catches a wrong class or batch."""
    file = tmp_path / "selfish.py"
    file.write_text(
        "from torch import nn\nclass Selfish(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.head = nn.Linear(432, 3)\n"
        "    def forward(self, x):\n        return self.head(x.flatten(1))\n"
        "    def explain(self, images, targets):\n        return images.mean(1) + targets[:, None, None]\n"
    )
    names: dict[str, type] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    classifier = Classifier(names["Selfish"](), unit, name="selfish")
    found = open_method("own")(classifier, pictures(2), [0, 2])
    torch.testing.assert_close(found.map, pictures(2).mean(1) + torch.tensor([0.0, 2.0])[:, None, None])
    assert found.certificates[0].method == "own"
    before = digest_of(open_method("own"), classifier)
    file.write_text(file.read_text().replace("mean(1)", "sum(1)"))
    assert Path(file).is_file()
    assert before != digest_of(open_method("own"), classifier)  # its code is part of no fingerprint
