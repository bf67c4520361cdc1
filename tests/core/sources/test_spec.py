from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import ForetellError
from core.sources import SOURCES, load
from core.sources.spec import parse_spec

EXTRAS = ("timm", "transformers", "open_clip")


@pytest.mark.parametrize(
    ("text", "source", "name", "settings"),
    [
        ("resnet50", "torchvision", "resnet50", {}),
        ("resnet50:IMAGENET1K_V1", "torchvision", "resnet50:IMAGENET1K_V1", {}),
        ("torchvision:resnet50:IMAGENET1K_V1", "torchvision", "resnet50:IMAGENET1K_V1", {}),
        ("folder/mine.py:make", "file", "folder/mine.py:make", {}),
        ("file:mine.py", "file", "mine.py", {}),
        (r"C:\nets\mine.py:make", "file", r"C:\nets\mine.py:make", {}),
        ("folder/net.pt2", "exported", "folder/net.pt2", {}),
        ("net.PT", "exported", "net.PT", {}),
        ("hf:some.py/one", "hf", "some.py/one", {}),
        ("why?.py:build", "file", "why?.py:build", {}),
        (
            "clip:ViT-B-32:openai?names=a b.txt&prompt=what is a {}?&prompt=x=y {}",
            "clip",
            "ViT-B-32:openai",
            {"names": ("a b.txt",), "prompt": ("what is a {}?", "x=y {}")},
        ),
    ],
)
def test_a_specification_is_taken_apart(text, source, name, settings):
    """A name that is read as another source's, or a prompt that is cut short."""
    spec = parse_spec(text, SOURCES, Path())
    assert (spec.source, spec.name, spec.settings) == (source, name, settings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"'' names no model. Give scenes, scenes:NAME, torchvision:NAME, timm:NAME"),
        ("hf:", r"'hf:' names no model. Give"),
        ("tim:resnet50", r"Unknown model source 'tim'. Did you mean 'timm'\?"),
        (
            "huggingface:x",
            r"Unknown classifier 'huggingface'. Give scenes, scenes:NAME, torchvision:NAME, timm:NAME",
        ),
        ("torchvision:resnet19", r"Unknown classifier 'resnet19'. Did you mean resnet18"),
        ("resnet18:V9", r"resnet18 has no weights 'V9'. torchvision offers: IMAGENET1K_V1"),
        ("resnet18?names=a.txt", r"torchvision:resnet18 does not take the setting 'names'. It takes none"),
        ("clip:ViT-B-32?names=a.txt&b", r"'b' in 'clip:.*' is not of the form name=value. Separate settings with &"),
    ],
)
def test_a_bad_specification_says_what_to_do(text, said):
    with pytest.raises(ForetellError, match=said):
        load(text)


@pytest.mark.parametrize(
    ("spec", "package"), [("timm:vit_tiny", "timm"), ("hf:a/b", "transformers"), ("clip:ViT-B-32", "open_clip_torch")]
)
def test_a_missing_package_is_one_sentence_with_its_command(spec, package, names, monkeypatch):
    """An ImportError, or a package of another name than the one to install."""
    monkeypatch.setitem(sys.modules, {"open_clip_torch": "open_clip"}.get(package, package), None)
    with pytest.raises(ForetellError) as caught:
        load(f"{spec}?names={names}")
    assert str(caught.value) == f"{spec} needs {package}, which is not installed. Run: pip install {package}"


def test_packages_of_sources_are_imported_only_when_they_are_named(tmp_path):
    """Seconds of imports, or a failure without the packages, for networks that need none of them."""
    (tmp_path / "mine.py").write_text(
        "from torch import nn\ndef build():\n"
        "    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 2))\n"
    )
    code = (
        f"import sys; from core.sources import load; import study.network.sources, dashboard.cli.explain; "
        f"load({str(tmp_path / 'mine.py:build')!r}); print([name for name in {EXTRAS} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
