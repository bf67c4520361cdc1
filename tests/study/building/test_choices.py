"""Choices of a study that a paper may make otherwise: resizing, drawing, confusion, the spread of categories."""

from __future__ import annotations

import importlib
import textwrap

import numpy as np
import pytest
import torch
from PIL import Image

from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.geometry import measure_geometry
from core.sources import load
from core.sources.torchvision_models import squash_images
from core.types import Explanation, silent
from study.building.candidates import SetPredictions, foil
from study.building.categories import choose_categories
from study.building.stimuli import compute_drawn_values
from study.network.predictions import predict
from study.network.sources import open_classifier, open_set
from study.plan.config import ImageSource, read
from tests.study.building.test_candidates import POOL, SHIFTED, K, answers, material
from tests.study.studies import TINY


@pytest.fixture(scope="module")
def weights():
    import_torchvision()
    return importlib.import_module("torchvision.models").ResNet50_Weights.IMAGENET1K_V1


def test_the_whole_image_is_squashed_to_the_input(weights):
    """Pixel for pixel what Pillow's resize and the published mean and deviation give; the own transforms crop."""
    rng = np.random.default_rng(1)
    wide = Image.fromarray(rng.integers(0, 255, (120, 360, 3), dtype=np.uint8))
    seen = squash_images(weights)(wide)
    small = np.asarray(wide.resize((224, 224), Image.Resampling.BILINEAR), dtype=np.float32) / 255
    expected = (small - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(seen.permute(1, 2, 0).numpy(), expected, atol=1e-5)
    assert measure_geometry(squash_images(weights), (360, 120)).box == (0, 0, 360, 120)
    left, _, right, _ = measure_geometry(weights.transforms(), (360, 120)).box
    assert left > 100
    assert right < 260


def test_a_network_with_transforms_of_its_own_refuses_to_be_resized(tmp_path):
    (tmp_path / "mine.py").write_text("def build(): ...")
    with pytest.raises(
        ForetellError, match=r'resize = "whole" is for torchvision, timm and CLIP networks; mine.py:build has'
    ):
        load(f"{tmp_path / 'mine.py'}:build", whole=True)


def test_values_are_drawn_as_they_are_and_evidence_from_its_zero():
    """By hand: an expected mask of .25 and .75 around a prior mean of .5 with an error of .01."""
    one = Explanation(torch.tensor([[[0.25, 0.75]]]), 0.5, (), torch.full((1, 1, 2), 0.01))
    limit = np.quantile([0.25, 0.75], 0.995)
    np.testing.assert_allclose(compute_drawn_values(one, 0, "values"), [[0.25 / limit, 1.0]], rtol=1e-5)
    fade = 0.25**2 / (0.25**2 + 0.02**2)
    np.testing.assert_allclose(compute_drawn_values(one, 0, "evidence"), [[-fade, fade]], rtol=1e-5)


def test_confusion_in_one_direction_or_both():
    """Ants are called bee twice; cats are called ant three times: the foil of ant is bee or cat."""
    right = [(k, k) for k in range(K) for _ in range(4)]
    standard = [*right, *[(0, 1)] * 2, *[(2, 0)] * 3]
    both = material(standard)
    one_way = SetPredictions(both.categories, answers(POOL), answers(standard), answers(SHIFTED), one_way=True)
    assert both.categories[foil(both, 0)] == "cat"
    assert both.categories[foil(one_way, 0)] == "bee"


def test_categories_spread_over_ranks_or_over_accuracy():
    """Accuracies .1, .2, .3 and .9: the middle one by rank is .2, the one nearest to the middle accuracy .3."""
    shares = {1: 2, 2: 4, 3: 6, 4: 18}
    standard = [(k, k if i < right else (k + 1) % K) for k, right in shares.items() for i in range(20)]
    m = material(standard, adversarial=[(k, (k + 2) % K) for k in range(K)])
    assert choose_categories(m, 3, 1, "ranks") == [1, 3, 4]
    assert choose_categories(m, 3, 1, "accuracy") == [1, 3, 4]
    assert choose_categories(m, 4, 1, "accuracy") == [1, 2, 3, 4]
    five = {0: 2, 1: 4, 2: 5, 3: 6, 4: 18}
    standard = [(k, k if i < right else (k + 1) % K) for k, right in five.items() for i in range(20)]
    m = material(standard, adversarial=[(k, (k + 2) % K) for k in range(K)])
    assert choose_categories(m, 3, 1, "ranks") == [0, 2, 4]
    assert choose_categories(m, 3, 1, "accuracy") == [0, 3, 4]


def test_choices_left_out_leave_old_study_files_as_they_were(tmp_path):
    """Their digest enters the study hash: a default must not be written down."""
    (tmp_path / "tiny.toml").write_text(TINY)
    written = read(tmp_path / "tiny.toml").model_dump(mode="json")
    assert "resize" not in written["classifier"]
    assert "drawing" not in written["saliency"]
    assert not {"spread", "confusion"} & set(written["trials"])


def test_other_transforms_are_not_answered_from_the_cache(tmp_path):
    """The same weights behind darker inputs: predictions kept for the first network must not serve the second."""
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "pool", "size": 32}), tmp_path)
    found = []
    for shift in (0.0, 1.5):
        (tmp_path / "mine.py").write_text(
            textwrap.dedent(f"""
            from data.scenes import classifier
            from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, build

            def transforms(image):
                return classifier.transforms(image) + {shift}
            """)
        )
        network = open_classifier("mine.py:build", tmp_path)
        inputs = torch.stack([network.preprocess(images.open(i)) for i in range(32)])
        found.append(predict(network, images, tmp_path / "cache", silent).probability)
        expected = network.probabilities(inputs).amax(1).numpy()
        np.testing.assert_allclose(found[-1], expected, rtol=1e-4)
    assert not np.allclose(found[0], found[1], atol=0.01)
