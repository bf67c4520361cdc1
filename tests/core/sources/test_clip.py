from __future__ import annotations

import importlib
from itertools import combinations

import pytest
import torch

from core.attribution import METHODS
from core.errors import ForetellError
from core.sources import load
from core.teaching.examples import choose_examples
from core.teaching.kfac import fit_prior
from core.teaching.scoring import score_sets
from tests.core.sources.conftest import LABELS, save_clip

PROMPTS = ("a photo of a {}.", "a drawing of the {}, seen from afar.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("clip")


@pytest.fixture(scope="module")
def network(folder):
    return save_clip(folder)


@pytest.mark.parametrize("prompts", [PROMPTS[:1], PROMPTS])
def test_the_head_is_the_zero_shot_classifier_of_open_clip(folder, network, names, picture, prompts, tmp_path):
    """Embeddings averaged in another order, not normalised, or without the temperature. Oracle: open_clip's own."""
    open_clip = importlib.import_module("open_clip")
    (tmp_path / "prompts.txt").write_text("\n".join(prompts))
    classifier = load(f"clip:{folder}?names={names}&prompts=prompts.txt", base=tmp_path)
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    weights = open_clip.build_zero_shot_classifier(network, tokenizer, list(LABELS), list(prompts))
    transforms = open_clip.transform.image_transform_v2(
        open_clip.transform.PreprocessCfg(size=32, mean=(0.1, 0.2, 0.3), std=(0.5, 0.5, 0.5)), is_train=False
    )
    expected = transforms(picture)[None]
    inputs = classifier.preprocess(picture)[None]
    assert torch.equal(inputs, expected)
    with torch.no_grad():
        image = network.encode_image(expected, normalize=True)
        logits = network.logit_scale.exp() * image @ weights
    torch.testing.assert_close(classifier.logits(inputs), logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(classifier.features(inputs), image, rtol=1e-4, atol=1e-5)
    assert classifier.categories == LABELS
    assert classifier.mean_colour == (26, 51, 76)


def test_one_prompt_is_the_softmax_of_the_network_itself(folder, network, names, picture):
    """A zero-shot head that is not what CLIP was trained with. Oracle: the network's own forward pass."""
    open_clip = importlib.import_module("open_clip")
    classifier = load(f"clip:{folder}?names={names}&prompt=the {{}}")
    inputs = classifier.preprocess(picture)[None]
    texts = open_clip.get_tokenizer(f"local-dir:{folder}")([f"the {name}" for name in LABELS])
    with torch.no_grad():
        image, text, scale = network(inputs, texts)
    torch.testing.assert_close(classifier.probabilities(inputs), (scale * image @ text.T).softmax(1))


def test_the_bias_of_a_sigmoid_network_is_that_of_the_head(tmp_path, names, picture):
    """A head without the bias that SigLIP adds to every logit. Oracle: logits without it, by hand."""
    save_clip(tmp_path / "clip", init_logit_bias=-10)
    classifier = load(f"clip:{tmp_path / 'clip'}?names={names}")
    inputs = classifier.preprocess(picture)[None]
    expected = classifier.features(inputs) @ classifier.head[:, :-1].float().T - 10
    torch.testing.assert_close(classifier.logits(inputs), expected, rtol=1e-4, atol=1e-4)


def test_names_and_prompts_change_the_fingerprint(folder, network, tmp_path):
    """Stimuli of other class names or prompts that a study takes for those it has."""
    (tmp_path / "other.txt").write_text("cat\ndog\nbird\nhorse\n")
    (tmp_path / "names.txt").write_text("\n".join(LABELS))
    specs = ("?names=names.txt", "?names=other.txt", "?names=names.txt&prompt=a {}")
    prints = [load(f"clip:{folder}{spec}", base=tmp_path).fingerprint for spec in (*specs, specs[0])]
    assert len(set(prints)) == 3
    assert prints[0] == prints[3]


@pytest.mark.parametrize("method", ["lrp_epsilon", "attn_lrp", "deeplift"])
def test_relevance_and_deeplift_pass_the_norm_of_the_embedding(folder, names, method):
    """Relevance methods refused on CLIP, or a sum that the norm changes."""
    classifier = load(f"clip:{folder}?names={names}")
    images = torch.rand((2, *classifier.input_shape), generator=torch.Generator().manual_seed(0))
    found = METHODS[method](classifier, images, [2, 0])
    assert found.map.shape == (2, 32, 32)
    assert float(found.map.std()) > 0
    if method == "deeplift":
        for certificate in found.certificates:
            assert abs(certificate.completeness) < 1e-3


def test_bayesian_teaching_works_on_a_zero_shot_head(folder, network, names):
    """Teaching by masks or examples refused on CLIP, or made from other features than those that the head takes.

    The chosen sets are all scored: best and unhelpful have to be the largest and the smallest of `score_sets`.
    """
    classifier = load(f"clip:{folder}?names={names}")
    generator = torch.Generator().manual_seed(0)
    images = torch.rand((12, *classifier.input_shape), generator=generator)
    with torch.no_grad():
        features = network.encode_image(images, normalize=True)
    prior = fit_prior(classifier.head, [features], damping=1e-3)
    pools = torch.arange(5), torch.arange(5, 10)
    every = torch.tensor(
        [(*a, *b) for a in combinations(range(5), 2) for b in combinations(range(5, 10), 2)], dtype=torch.long
    )
    probabilities = score_sets(prior, features, every, features[11], (2, 0), weight=128.0)
    for policy, expected in (("best", probabilities.max()), ("unhelpful", probabilities.min())):
        search = choose_examples(
            prior, classifier.features(images), *pools, classifier.features(images)[11], (2, 0),
            generator=generator, policy=policy, sets=None,
        )  # fmt: skip
        assert search.chosen.p_learner == pytest.approx(float(expected), rel=1e-4)
    explanation = METHODS["bayesian_teaching"](classifier, images[:1], [2], samples=64, generator=generator)
    assert explanation.map.shape == (1, 32, 32)
    assert float(explanation.map.std()) > 0


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            "clip:ViT-B-32",
            r"clip:ViT-B-32 needs class names to choose from: write one per line .* clip:ViT-B-32\?names=FI",
        ),
        ("clip:ViT-B-3?names={names}", r"open_clip has no model 'ViT-B-3'. Did you mean ViT-B-32 or"),
        ("clip:ViT-B-32:opena?names={names}", r"no weights 'opena' of ViT-B-32. It offers: openai, .* and \d+ more"),
        (
            "clip:ViT-B-32:laion2b_s34b_b79k?names={names}",
            r"The weights of clip:ViT-B-32:laion2b_s34b_b79k are not on this machine and huggingface.co cannot be "
            r"reached. Connect once, or put open_clip_config.json and open_clip_model.safetensors \(or .*\) of https://huggingface"
            r".co/laion/CLIP-ViT-B-32-laion2B-s34B-b79K in a folder and name it as clip:FOLDER",
        ),
        (
            "clip:ViT-B-32?names={names}&prompt=a photo",
            r"The prompt 'a photo' has no {} for the class name. Example: a",
        ),
        ("clip:ViT-B-32?names=none.txt", r"none.txt cannot be read \(.*\). Give a UTF-8 text file with one class name"),
        ("clip:ViT-B-32?names={one}", r"one.txt has 1 class name. Give two or more, one per line"),
        (
            "clip:ViT-B-32?names={twice}",
            r"class names of clip:ViT-B-32 have 'cat' twice. Give each class",
        ),
        (
            "clip:{empty}?names={names}",
            r"does not hold a network of clip .* It needs open_clip_config.json and open_clip_m",
        ),
    ],
)
def test_bad_names_say_what_to_do(spec, text, names, tmp_path):
    (tmp_path / "one.txt").write_text("cat\n")
    (tmp_path / "twice.txt").write_text("cat\ndog\ncat\n")
    (tmp_path / "empty").mkdir()
    paths = {name: tmp_path / f"{name}.txt" for name in ("one", "twice")} | {
        "names": names,
        "empty": tmp_path / "empty",
    }
    with pytest.raises(ForetellError, match=text) as caught:
        load(spec.format(**paths))
    assert "\n" not in str(caught.value)
