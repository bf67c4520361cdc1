"""Every source through the command line, in this process: exit codes and one sentence for each error."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from dashboard.cli import main as cli
from tests.core.sources.conftest import (
    LABELS,
    build_small_network,
    save_clip,
    save_huggingface,
    save_program,
    save_timm,
)

NET = Path("net")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, picture):
    """Run a command in a folder with one image and return its exit code and what it printed as an error."""
    monkeypatch.chdir(tmp_path)
    picture.save("one.png")
    (tmp_path / "names.txt").write_text("\n".join(LABELS))

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["foretell.py", *words])
        try:
            cli.main()
        except SystemExit as end:
            return end.code or 0, capsys.readouterr().err
        return 0, capsys.readouterr().err

    return command


@pytest.mark.parametrize(
    ("save", "spec", "methods"),
    [
        (lambda: save_timm(NET, "test_vit", label_names=list(LABELS)), "timm:net", "gradient"),
        (lambda: save_huggingface(NET), "hf:net", "gradient,bayesian_teaching"),
        (lambda: save_clip(NET), "clip:net?names=names.txt&prompt=a {}", "gradient,bayesian_teaching"),
        (lambda: save_program(Path("net.pt2"), build_small_network()), "net.pt2", "gradient,occlusion"),
    ],
    ids=["timm", "hf", "clip", "exported"],
)
def test_explain_takes_every_source(run, tmp_path, save, spec, methods):
    """A source that the command line or its files do not take. By hand: a map of the whole image for each method."""
    save()
    settings = ("--param", "samples=32") if "bayesian" in methods else ()
    words = ("--model", spec, "--image", "one.png", "--method", methods, *settings, "--out", "out")
    assert run("explain", *words)[0] == 0
    for method in methods.split(","):
        assert np.isfinite(np.load(tmp_path / "out" / f"one.{method}.npy")).all()


@pytest.mark.parametrize(
    ("command", "spec", "text"),
    [
        ("explain --image one.png", "timm:vit_tiny_patch16_225", "timm has no model 'vit_tiny_patch16_225'. Did you"),
        ("layers probes", "clip:ViT-B-32", "clip:ViT-B-32 needs class names to choose from"),
        (
            "concepts --target cat --concept x=y",
            "hf:nobody/nothing",
            "The weights of hf:nobody/nothing are not on this machine",
        ),
        ("uncertainty", "timm:vit_base_patch14_dinov2.lvd142m", "has no classification head"),
        ("prior", "none.pt2", "There is no file"),
    ],
)
def test_every_command_refuses_in_one_sentence(run, tmp_path, command, spec, text):
    """A traceback or exit code 1, and output that is begun before the model is known."""
    code, said = run(*command.split(), "--model", spec)
    assert code == 2
    assert text in said
    assert said.startswith("Error: ")
    assert said.strip().count("\n") == 0
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("one.png", "names.txt")] == []
