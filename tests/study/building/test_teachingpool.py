"""Which pool pictures may be examples: near-duplicates, the target, categories that are too small; and their copies."""

from __future__ import annotations

import io
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from study.building.augmentation import augment_image
from study.building.build import build
from study.network.duplicates import repeats, sketches
from study.network.sources import open_classifier, open_set
from study.plan.config import ImageSource
from study.workspace.workspace import ROOT
from tests.study.studies import SMALL, TINY

pytestmark = pytest.mark.usefixtures("shared_predictions")


@pytest.fixture(scope="module")
def classifier():
    return open_classifier("scenes", ROOT)


def saved(picture, **options):
    buffer = io.BytesIO()
    picture.save(buffer, **options)
    return Image.open(buffer).convert("RGB")


CHANGES = {
    "jpeg": lambda p: saved(p, format="JPEG", quality=30),
    "half": lambda p: p.resize((p.width // 2, p.height // 2)),
    "bright": lambda p: p.point(lambda value: min(255, int(1.15 * value))),
    "grey": lambda p: p.convert("L").convert("RGB"),
    "shifted": lambda p: p.crop((1, 1, p.width, p.height)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_copies_are_found_and_different_images_are_not(classifier, change):
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "pool", "size": 300}), ROOT)
    pictures = [images.open(i) for i in range(300) if images.labels[i] == 2]
    inputs = [classifier.preprocess(p) for p in [*pictures, *map(CHANGES[change], pictures)]]
    left_out = repeats(sketches(torch.stack(inputs)))
    assert left_out == {len(pictures) + i: i for i in range(len(pictures))}


def test_a_repeat_of_a_repeat_is_kept_by_the_first_that_stays():
    """Not every chain of likenesses is one picture: what is not like any kept picture stays."""
    angles = torch.tensor([0.0, 0.4, 0.8, 3.0])  # neighbours correlate by .92, the first and the third by .70
    assert repeats(torch.stack([angles.cos(), angles.sin()], 1)) == {1: 0}
    flat = sketches(torch.full((2, 3, 32, 32), 0.5))
    assert repeats(flat) == {}


@pytest.mark.real
def test_a_pair_of_real_photographs(real):
    """Among 399 photographs of deer in CIFAR-10's training set two are the same; seen by eye."""
    stored = np.load(real / "cifar10" / "cifar10_train_lossless_4000.npz")
    own = np.flatnonzero(stored["Y"] == 4)
    inputs = torch.from_numpy(stored["X"][own]).permute(0, 3, 1, 2).float()
    assert {int(own[a]): int(own[b]) for a, b in repeats(sketches(inputs)).items()} == {2210: 661}


def test_near_duplicates_and_the_target_are_never_examples_and_the_manifest_says_which(tmp_path):
    """A pool with a re-encoded copy of one picture, and every standard picture in it as well."""
    text = (
        TINY.replace("categories = 3\npractice = 2", "categories = 2\npractice = 0")
        .replace('set = "scenes"\nsplit = "pool"\nsize = 160', 'set = "folder"\npath = "pool"')
        .replace("sets = 20", 'sets = "all"')
    )
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 240}), ROOT)
    for i in range(240):
        folder = tmp_path / "pool" / images.categories[images.labels[i]]
        folder.mkdir(parents=True, exist_ok=True)
        images.open(i).save(folder / f"{i:04d}.png")
        images.open(i).save(folder / f"{i:04d}-again.jpg", quality=60)
    (tmp_path / "doubled.toml").write_text(text)
    manifest = build(tmp_path / "doubled.toml", tmp_path / "home").manifest
    assert manifest.trials
    found = manifest.sets["pool"]["near_duplicates"]
    assert found
    for left_out, kept in found.items():
        assert left_out.split(".")[0].removesuffix("-again") == kept.split(".")[0].removesuffix("-again")
    for trial in manifest.trials:
        used = [example.source.split("/")[-1][:4] for example in trial.assets.examples]
        assert len(set(used)) == 4  # a copy would show one picture twice
        if trial.trial_type != "adv_incorrect":
            assert f"{int(trial.source.split('/')[-1]):04d}" not in used


def test_copies_are_parts_of_the_image_mirrored_half_the_time():
    """A picture whose value is its column: each copy must span a part of that range, rising or falling."""
    columns = torch.arange(32.0).expand(3, 32, 32)
    copies = augment_image(columns, 400, seed=1)
    assert copies.shape == (400, 3, 32, 32)
    assert float(copies.min()) >= -1e-4
    assert float(copies.max()) <= 31 + 1e-4
    slopes = (copies[:, 0, 16, -1] - copies[:, 0, 16, 0]) / 31
    assert 150 < int((slopes < 0).sum()) < 250
    widths = slopes.abs().clamp(max=1)
    assert 0.55 < float(widths.mean()) < 0.8  # area uniform in [.08, 1]: the mean of its root is .69
    assert float(widths.min()) > 0.2
    assert torch.equal(copies, augment_image(columns, 400, seed=1))


def test_a_study_with_augmented_copies_is_another_and_keeps_their_features(tmp_path):
    (tmp_path / "plain.toml").write_text(SMALL)
    (tmp_path / "copies.toml").write_text(SMALL.replace("sets = 20", "sets = 5\ncopies = 8"))
    plain, copied = (build(tmp_path / f"{name}.toml", tmp_path / "home") for name in ("plain", "copies"))
    assert [t.teaching.copies for t in copied.manifest.trials] == [8, 8, 8]
    assert plain.manifest.trials[0].teaching.p_prior == copied.manifest.trials[0].teaching.p_prior
    assert plain.manifest.trials[0].teaching.p_learner != copied.manifest.trials[0].teaching.p_learner
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "home" / "cache" / "copies").iterdir()}
    assert stamps
    shutil.rmtree(tmp_path / "home" / "bundles")
    again = build(tmp_path / "copies.toml", tmp_path / "home")
    assert again.study_hash == copied.study_hash
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "home" / "cache" / "copies").iterdir()} == stamps


def test_a_category_with_too_few_pool_images_drops_its_trials_and_says_so(classifier, tmp_path):
    """Two pictures of each category, which are also the only right standard ones: the target's own is no example."""
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 320}), ROOT)
    right = classifier.logits(torch.stack([classifier.preprocess(images.open(i)) for i in range(320)])).argmax(1)
    taken = [0] * len(images.categories)
    for i, label in enumerate(images.labels.tolist()):
        taken[label] += right[i] == label
        in_pool = right[i] == label and taken[label] <= 2
        for split in ["standard", "pool"] if in_pool else ["standard"] if right[i] != label else []:
            folder = tmp_path / split / images.categories[label]
            folder.mkdir(parents=True, exist_ok=True)
            images.open(i).save(folder / f"{i:04d}.png")
    text = SMALL
    text = text.replace('set = "scenes"\nsplit = "pool"\nsize = 160', 'set = "folder"\npath = "pool"')
    text = text.replace('set = "scenes"\nsplit = "standard"\nsize = 160', 'set = "folder"\npath = "standard"')
    (tmp_path / "few.toml").write_text(text.replace("sets = 20", "tries = 5\ndamping = 0.01"))
    manifest = build(tmp_path / "few.toml", tmp_path / "home").manifest
    assert {t.trial_type for t in manifest.trials} == {"adv_incorrect", "std_incorrect"}
    (dropped,) = manifest.dropped
    assert dropped["trial_type"] == "std_correct"
    expected = f"the pool has 1 usable image(s) of '{dropped['category']}', and a teaching set needs 2"
    assert dropped["reason"].endswith(expected)
    assert dropped["reason"].startswith("1 trial(s) dropped: of 2 target image(s) tried 0 could be taught")
