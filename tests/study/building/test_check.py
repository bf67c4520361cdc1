"""What is said of a study before it is built: real networks, real folders."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from core.errors import ForetellError
from study.building.build import build
from study.building.check import check
from tests.study.studies import TINY

pytestmark = pytest.mark.usefixtures("shared_predictions")

FOLDERS = """
[study]
name = "folders"
title = "Folders"
[classifier]
model = "scenes"
[sets.pool]
set = "folder"
path = "pool"
[sets.standard]
set = "folder"
path = "standard"
[sets.adversarial]
set = "folder"
path = "adversarial"
[trials]
categories = 2
"""


def write_images(folder, names, count):
    """Write ``count`` images of noise per category: real files, whatever the network makes of them."""
    rng = np.random.default_rng(3)
    for name in names:
        (folder / name).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(rng.integers(0, 255, (60, 80, 3), dtype=np.uint8)).save(folder / name / f"{i}.png")


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "folders.toml").write_text(FOLDERS)
    return tmp_path


def test_a_study_that_can_be_built_is_described_and_nothing_is_built(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    home = tmp_path / "home"
    checked = check(tmp_path / "tiny.toml", home)
    assert checked.obstacles == ()
    assert not (home / "bundles").exists()
    bundle = build(tmp_path / "tiny.toml", home)
    assert checked.trials == len(bundle.manifest.trials)
    assert checked.sets[0] == "pool: scenes/pool, 160 images of 16 categories"
    assert "Planned: 9 trials and 2 for practice." in checked.notes
    assert checked.seconds > 0
    text = "\n".join(checked.lines)
    assert "leave out random slopes" not in text
    paper = TINY + '[analysis.models]\nnull = "trial_type"\nexplanation = "trial_type + saliency"\n'
    (tmp_path / "paper.toml").write_text(paper)
    assert (
        "The planned models (“Mixed models” under Plan in Design; [analysis.models] in the study file) leave out "
        "random slopes that the design supports (of trial type by participant; of saliency and examples by category; "
        "of saliency and examples by image)" in "\n".join(check(tmp_path / "paper.toml", home).lines)
    )
    assert "Largest study that fits:" in text
    assert "Estimated duration of the build: about" in text


def test_two_trial_types_from_one_set_are_doubted(tmp_path):
    """Catches a study that "can be built" although two of its types of trials are the same."""
    same = TINY.replace('split = "adversarial"\nsize = 160', 'split = "standard"\nsize = 400')
    (tmp_path / "same.toml").write_text(same)
    (tmp_path / "tiny.toml").write_text(TINY)
    checked = check(tmp_path / "same.toml", tmp_path / "home")
    assert (checked.obstacles, len(checked.doubts)) == ((), 1)
    assert checked.doubts[0].startswith("Standard and adversarial images are the same set (scenes/standard):")
    assert f"Warning: {checked.doubts[0]}" in checked.lines
    assert check(tmp_path / "tiny.toml", tmp_path / "home").doubts == ()


def test_what_takes_longer_than_the_patience_is_left_out_and_said(tmp_path):
    """Catches a page that starts an hour of predictions by itself, and one that waits for none."""
    (tmp_path / "tiny.toml").write_text(TINY)
    home = tmp_path / "home"
    checked = check(tmp_path / "tiny.toml", home, patience_s=0)
    assert checked.postponed.startswith("The network has not predicted 720 images yet, which takes about ")
    assert (checked.obstacles, checked.supply) == ((), None)
    assert not (home / "cache" / "predictions").exists()
    whole = check(tmp_path / "tiny.toml", home)
    again = check(tmp_path / "tiny.toml", home, patience_s=0)  # all images are predicted now
    assert (again.postponed, again.trials) == ("", whole.trials)


def test_a_shortage_is_said_whatever_the_patience(tmp_path):
    """Catches a shortage that only the long check would find."""
    study = TINY.replace("categories = 3", "categories = 60").replace("sets = 20", "sets = 20\ncopies = 4")
    (tmp_path / "tiny.toml").write_text(study)
    checked = check(tmp_path / "tiny.toml", tmp_path / "home", patience_s=1e6)
    assert [text.split(",")[0] for text in checked.obstacles] == ["You ask for 60 categories"]
    assert not (tmp_path / "home" / "cache" / "copies").exists()


def test_every_set_that_matches_no_class_is_named_at_once(folders):
    write_images(folders / "pool", ["Baum", "Haus"], 1)
    write_images(folders / "standard", ["Auto", "Fisch"], 1)
    write_images(folders / "adversarial", ["fish", "tree"], 1)
    checked = check(folders / "folders.toml", folders / "home")
    assert [text.split(" (")[0] for text in checked.obstacles] == [
        "No class of folder/pool",
        "No class of folder/standard",
    ]


def test_a_pool_smaller_than_the_features_needs_no_damping_from_the_user(tmp_path):
    """16 images and 64 features: the rule's damping is in the check, in the manifest, and the study is built."""
    few = TINY.replace("size = 160", "size = 48", 1).replace("categories = 3", "categories = 1")
    (tmp_path / "tiny.toml").write_text(few)
    checked = check(tmp_path / "tiny.toml", tmp_path / "home")
    note = next(text for text in checked.notes if "Ledoit" in text)
    assert note.startswith("The pool's 48 images do not span the network's ")
    bundle = build(tmp_path / "tiny.toml", tmp_path / "home")
    damping = bundle.manifest.classifier["prior"]["damping"]
    assert damping > 0.001
    assert f"damping = {damping:.3g} was chosen" in note


def test_a_shortage_is_said_with_the_table_and_what_to_add(folders):
    for role in ("pool", "standard", "adversarial"):
        write_images(folders / role, ["fish", "tree", "unicorn"], 1)
    (folders / "pool" / "fish" / "broken.jpg").write_bytes(b"nothing")
    checked = check(folders / "folders.toml", folders / "home")
    assert "1 file left out, such as fish/broken.jpg" in checked.sets[0]
    assert "1 category that is not a class of the network: unicorn" in checked.sets[0]
    assert "You ask for 2 categories, but the images allow none" in checked.obstacles[0]
    assert {row["category"] for row in checked.supply.table()} == {"fish", "tree"}
    assert all(row["missing"] for row in checked.supply.table())
    with pytest.raises(ForetellError, match="No study fits these images yet"):
        build(folders / "folders.toml", folders / "home")


def test_a_threshold_that_no_set_exceeds_is_an_obstacle(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY.replace('policy = "best"', 'policy = "first"\nthreshold = 1.0'))
    checked = check(tmp_path / "tiny.toml", tmp_path / "home")
    assert checked.obstacles[0].startswith("Every trial was dropped")
    assert any("made the learner's probability exceed 1.0" in text for text in checked.warnings)
