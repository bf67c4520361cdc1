"""Rules of the researcher's own and doubtful labels as numbers of a picture."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.debugging.labels import confident_learning
from core.errors import ForetellError
from core.types import silent
from inquiry.debugging.debugging import debug_classifier
from study.network.sources import class_of_labels
from tests.study.measures.grounds import asked, ground

RULES = """
from PIL import ImageOps

def calm(picture, answer):
    return answer.to(ImageOps.mirror(picture)).category == answer.category

def sure(picture, answer):
    return 1 - answer.probability

def right(picture, answer):
    return answer.category == answer.label

def of_ships(picture, answer):
    return None
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rules.py").write_text(RULES)
    return tmp_path


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_rule_gives_what_it_gives_by_hand(folder, index):
    """Catches another picture's answer, a label of the wrong set, and a broken rule that counts as kept."""
    on = {rule: ground(folder, "assertion", file="rules.py", rule=rule) for rule in ("calm", "sure", "right")}
    candidate, _ = asked(on["sure"], "adversarial", index)
    logits = on["sure"].classifier.logits(on["sure"].inputs(candidate))[0].double()
    mirrored = on["sure"].classifier.logits(on["sure"].inputs(candidate).flip(-1))[0]
    found = {rule: asked(one, "adversarial", index)[1].value for rule, one in on.items()}
    assert found["sure"] == pytest.approx(1 - float(logits.softmax(0).max()), abs=1e-5)
    assert found["calm"] == float(int(mirrored.argmax()) != int(logits.argmax()))
    assert found["right"] == float(int(logits.argmax()) != candidate.truth)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"file": "rules.py", "rule": "clam"}, "rules.py: Unknown rule 'clam'. Did you mean 'calm'"),
        ({"file": "rule.py", "rule": "calm"}, "There is no file"),
        ({"file": "rules.py", "rule": "of_ships"}, r"rules.py:of_ships returns None for adversarial/0/000000"),
    ],
)
def test_a_rule_that_gives_no_number_is_refused(folder, given, sentence):
    """Catches a picture of no stratum, or a name that stands for nothing."""
    with pytest.raises(ForetellError, match=sentence):
        asked(ground(folder, "assertion", **given), "adversarial", 0)


def test_doubt_of_a_label_is_the_turned_margin_of_confident_learning(tmp_path):
    """Catches the answer's own class left out in place of the label's, or a sign that is not turned."""
    on = ground(tmp_path, "label_error")
    images = on.sets["adversarial"]
    inputs = torch.stack([on.classifier.preprocess(images.open(i)) for i in range(len(images))])
    margins = confident_learning(on.classifier.probabilities(inputs), class_of_labels(images, on.classifier)).margin
    for index in (0, 7):
        assert asked(on, "adversarial", index)[1].value == pytest.approx(-margins[index], abs=1e-5)


def test_a_reader_that_has_not_seen_the_label_doubts_it_as_on_the_debugging_page(tmp_path):
    """Catches a reader of other pictures, and one that has seen the label."""
    on = ground(tmp_path, "label_error", judge="features")
    images = on.sets["pool"]
    seen = debug_classifier(on.classifier, images, tmp_path / "other", silent).read
    found = [asked(on, "pool", i)[1].value for i in range(3)]
    np.testing.assert_allclose(found, -seen.margin[:3], atol=1e-9)


def test_a_set_with_too_few_images_of_a_label_has_no_reader(tmp_path):
    """Catches a label of fewer pictures than folds, which no reader can be trained without."""
    with pytest.raises(ForetellError, match="A probe in 5 folds needs 2 or more labels and 5 images of each"):
        asked(ground(tmp_path, "label_error", judge="features"), "standard", 0)
