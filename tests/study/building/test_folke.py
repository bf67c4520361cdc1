"""The paper's study file: it reads, and its design runs, on real photographs and with fewer masks."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from core.errors import ForetellError
from core.types import silent
from data.sets import imagenet_a
from data.sets.wnids import imagenet_names
from study.building.build import build
from study.bundle import TRIAL_TYPES, Manifest
from study.network.predictions import predict
from study.network.sources import open_sources
from study.plan.config import read
from study.workspace.workspace import ROOT
from tests.conftest import folder_of_run
from tests.photographs import unpack_images

PAPER = ROOT / "data" / "studies" / "folke2021.toml"


def test_it_is_the_papers_design():
    config = read(PAPER)
    assert (config.trials.categories, config.trials.per_type) == (30, 1)
    teaching = config.teaching
    assert (teaching.policy, teaching.sets, teaching.threshold, teaching.weight, teaching.draws) == (
        "first",
        200,
        0.8,
        128,
        100,
    )
    assert (teaching.copies, teaching.prior) == (128, "resnet50.safetensors")
    assert config.classifier.resize == "whole"
    assert config.allocation.order == "shuffled"
    assert (config.saliency.parameters["samples"], config.saliency.drawing) == (1000, "values")
    assert config.conditions == ("none", "saliency", "examples", "both")


def test_without_the_images_it_says_all_that_is_missing_before_weights_are_fetched(tmp_path):
    """Catches a download of the network in front of the sentence, and a sentence that names one folder of two."""
    shutil.copy(PAPER, tmp_path / "folke2021.toml")
    with pytest.raises(ForetellError) as refused:
        open_sources(tmp_path / "folke2021.toml")
    pool, adversarial = str(refused.value).splitlines()
    assert re.search(r"No folder .*imagenet/val\. Its parent .* is missing as well", pool)
    assert re.search(r"No folder .*imagenet-a\.", adversarial)


def smaller(folder: Path, model: Path, **sets: str) -> Path:
    """The paper's file with another network and pictures, two categories, 64 masks and a weaker threshold."""
    text = PAPER.read_text()
    head, _, tail = text.partition("[sets.pool]")
    tail = tail[tail.index("[trials]") :]
    named = "".join(f"[sets.{role}]\n{settings}\n" for role, settings in sets.items())
    text = head.replace('"resnet50:IMAGENET1K_V1"', f'"{model.as_posix()}:build"') + named + tail
    for old, new in (
        ("categories = 30 ", "categories = 2 "),
        ("practice = 3", "practice = 1"),
        ("samples = 1000", "samples = 64"),
        ("tries = 1", "tries = 20"),
        ('resize = "whole"', ""),  # a network of one's own resizes in its own transforms
        ("copies = 128", "copies = 2"),
        ('prior = "resnet50.safetensors"', "damping = 0.001"),
    ):
        assert old in text
        text = text.replace(old, new)
    path = folder / "folke2021.toml"
    path.write_text(text)
    return path


def check(manifest: Manifest) -> None:
    """Two categories by three types; what no teaching set reaches is dropped and said, as one of the paper's 90 was."""
    made = [(trial.truth, trial.trial_type) for trial in manifest.trials]
    lacking = [(dropped["category"], dropped["trial_type"]) for dropped in manifest.dropped]
    assert len({truth for truth, _ in made + lacking}) == 2
    assert sorted(kind for _, kind in made + lacking) == sorted([*TRIAL_TYPES, *TRIAL_TYPES])
    assert len(made) >= 4
    assert all("none of 200 teaching sets" in dropped["reason"] for dropped in manifest.dropped)
    for trial in manifest.trials:
        assert trial.teaching.p_learner > 0.8
        assert trial.teaching.policy == "first"
        assert 0 < trial.teaching.rank <= 1
        assert {e.category for e in trial.assets.examples} == {trial.target, trial.alternative}
        assert trial.saliency.samples == 64


SHARES = {"pool": 5, "standard": 6, "adversarial": 1}
"""Of each set every so manieth image is in the study."""


@pytest.mark.slow
@pytest.mark.real
def test_the_whole_design_on_cifar10(real, tmp_path, tmp_path_factory):
    images = unpack_images(real, folder_of_run(tmp_path_factory) / "photographs")
    for role, share in SHARES.items():
        for path in sorted((images / role).rglob("*.*"))[::share]:
            kept = tmp_path / path.relative_to(images)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.hardlink_to(path)
    roles = {role: f'set = "folder"\npath = "{role}"' for role in SHARES}
    path = smaller(tmp_path, real / "cifar10" / "resnet.py", **roles)
    manifest = build(path, tmp_path / "home").manifest
    check(manifest)


@pytest.mark.real
def test_a_miniature_imagenet_meets_the_network_by_its_wordnet_ids(real, tmp_path):
    """One real photograph of each of 184 categories in the published layout: were an id off, nothing would be right."""
    for name, wanted in (("imagenet/val", imagenet_names()), ("imagenet-a", imagenet_a.wnids())):
        for folder in (real / "imagenet" / "images").iterdir():
            if folder.name in wanted:
                shutil.copytree(folder, tmp_path / name / folder.name)
    val = 'set = "imagenet"\npath = "imagenet/val"\npartial = true'
    adversarial = 'set = "imagenet_a"\npath = "imagenet-a"\npartial = true'
    model = real / "imagenet" / "mobilenet_v2.py"
    sources = open_sources(smaller(tmp_path, model, pool=val, standard=val, adversarial=adversarial))
    assert sources.sets["pool"] is sources.sets["standard"]
    answers = predict(sources.classifier, sources.sets["adversarial"], tmp_path, silent)
    assert len(answers.truth) == 28
    assert [sources.classifier.categories[k].split(",")[0] for k in answers.truth[:2]] == ["stingray", "goldfinch"]
    assert answers.correct.mean() > 0.6
