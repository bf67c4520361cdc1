from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from core.errors import ForetellError
from core.loading import import_torchvision
from core.sources import load
from tests.conftest import ROOT

OWN = """
import torch
from torch import nn
from helper import CLASSES
CATEGORIES = ["x", "y"][:CLASSES]
def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, CLASSES))
def broken():
    return "not a network"
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "helper.py").write_text("CLASSES = 2\n")
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "own.py"


def test_a_users_file_with_a_neighbour_import_and_default_transforms(own):
    classifier = load(f"{own}:build")
    assert classifier.categories == ("x", "y")
    assert classifier.input_shape == (3, 224, 224)
    assert str(own.parent) not in sys.path


def test_torchvision_models_and_transforms_work():
    network = import_torchvision().models.get_model("resnet18", weights=None)
    assert network.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)


@pytest.mark.parametrize("where", ["top", "transforms"])
def test_a_users_file_may_import_torchvision_itself(tmp_path, where):
    """In a process of its own: here torchvision is loaded already. It fails by itself beside a CPU build of torch."""
    use = "from torchvision.transforms.functional import to_tensor"
    top, inside = (use, "") if where == "top" else ("", use + "; ")
    (tmp_path / "mine.py").write_text(
        f"from torch import nn\n{top}\ndef build():\n"
        "    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 2))\n"
        f"def transforms(image):\n    {inside}return to_tensor(image)\n"
    )
    program = (
        "from PIL import Image; from core.sources import load; "
        "print(load('mine.py:build').preprocess(Image.new('RGB', (4, 5))).shape)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout.strip()) == (0, "torch.Size([3, 5, 4])"), ran.stderr


REPAIR = """
import torch, sys
from core.loading import import_torchvision
import core.loading
{before}
import_torchvision().models.resnet18
print("repaired" if core.loading._repair is not None else "as it stands")
"""


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", {"repaired", "as it stands"}),
        # With the operators there already (as where torch is a CUDA build) nothing must be declared a second time.
        (
            "lib = torch.library.Library('torchvision', 'FRAGMENT')\n"
            "for n in ('nms', 'qnms'):\n"
            "    lib.define(n + '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')",
            {"as it stands"},
        ),
    ],
)
def test_the_repair_is_made_only_where_it_is_needed(before, expected):
    done = subprocess.run(
        [sys.executable, "-c", REPAIR.format(before=before)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in expected


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("resnet19", "Unknown classifier 'resnet19'. Did you mean resnet18"),
        ("nowhere/own.py:build", "There is no file nowhere/own.py"),
        ("{own}:make", "has no function 'make'. It defines: .*build"),
        ("{own}:broken", "returned str; it must return a torch.nn.Module"),
    ],
)
def test_bad_specs_name_culprit_and_remedy(own, spec, text):
    with pytest.raises(ForetellError, match=text):
        load(spec.format(own=own))


def test_a_file_that_fails_says_so_without_hiding_the_reason(tmp_path):
    (tmp_path / "bad.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(ForetellError, match=r"bad.py failed while it was read: ModuleNotFoundError"):
        load(f"{tmp_path / 'bad.py'}:build")


def test_a_file_edited_within_the_second_is_read_as_it_stands(tmp_path, monkeypatch):
    """Python keeps compiled files by whole seconds and size: an edit of equal length would be missed."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "mine.py"
    text = (
        "from torch import nn\nCATEGORIES = {}\n"
        "def build():\n    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2))\n"
    )
    for names in (["day", "dim"], ["dim", "day"]):
        file.write_text(text.format(names))
        os.utime(file, (1_700_000_000, 1_700_000_000))
        assert load(f"{file}:build").categories == tuple(names)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]  # nothing is left beside a user's file
