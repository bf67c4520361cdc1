"""``prior`` and ``build --workers`` as real processes, one after the other."""

from __future__ import annotations

import pytest

from study.bundle import TRIAL_TYPES
from study.workspace.workspace import bundle_named
from tests.commands import run
from tests.study.studies import SMALL

SCENES = ("--set", "scenes", "--setting", "split=pool", "--setting", "size=160")


def test_a_prior_is_learned_and_a_study_is_built_with_it_by_two_workers(tmp_path):
    done = run("prior", *SCENES, "--damping", "0.01", "--out", tmp_path / "scenes.safetensors")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("160 images; condition numbers: features ")
    assert done.stdout.splitlines()[-1] == str(tmp_path / "scenes.safetensors")
    assert "Learning the prior from scenes/pool: 160" in done.stderr.splitlines()
    (tmp_path / "tiny.toml").write_text(SMALL.replace("sets = 20", 'sets = 20\nprior = "scenes.safetensors"'))
    built = run("build", tmp_path / "tiny.toml", "--workers", 2, home=tmp_path / "home")
    assert built.returncode == 0, built.stderr
    assert "Traceback" not in built.stderr
    manifest = bundle_named(tmp_path / "home", "tiny").manifest
    assert [trial.trial_type for trial in manifest.trials] == list(TRIAL_TYPES)
    assert manifest.classifier["prior"]["file"]["damping"] == 0.01
    written = [tmp_path / "home", *(tmp_path / "home").rglob("*")]  # as it was by `serve` only
    assert {str(path): oct(path.stat().st_mode) for path in written if path.stat().st_mode & 0o077} == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("prior", "--set", "imagnet"), "Unknown image set 'imagnet'. Did you mean 'imagenet'"),
        (("prior", *SCENES, "--damping", "-1"), "--damping -1.0 and --tau 0.0 must not be negative"),
        (("prior", "--setting", "split"), "--setting 'split' is not of the form name=value"),
        (("prior", "--set", "imagenet", "--setting", "path=nowhere"), "No folder"),
        (("build", "data/studies/demo.toml", "--engine", "dask"), "Unknown engine 'dask'. Use one of"),
        (("build", "data/studies/demo.toml", "--device", "cuda:99"), "There is no device 'cuda:99' here."),
    ],
)
def test_wrong_input_is_one_sentence(arguments, text, tmp_path):
    done = run(*arguments, home=tmp_path)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr
