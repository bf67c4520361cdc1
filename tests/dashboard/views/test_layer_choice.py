"""The controls of the view of layers: topics, questions, classes and the fields of a question."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from core.class_names import ClassNames
from core.names import format_name
from core.parameters import list_parameters, summary
from dashboard.explore.layers import choice, words
from dashboard.explore.layers import view as inside
from dashboard.shared import cache, live
from inquiry.files.targets import TOP
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerQuery
from inquiry.layers.record import Topic, group_questions, record_of
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import OTHER, settled


@pytest.fixture(autouse=True)
def _nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all work wait for a click: the controls are the same, and no test waits for a table that it does not read."""
    monkeypatch.setattr(live, "HESITATE_S", -1.0)


def test_an_unknown_question_of_a_link_is_said(opened) -> None:
    """Catches a link to a question that is silently replaced by the first one."""
    app = opened(view="Layers", question="Riddles")
    assert any("names the question “Riddles”" in one.value for one in app.warning)


def test_a_topic_offers_its_questions_with_what_each_is_about(opened) -> None:
    """Catches one flat list of 22 single words, a question that no topic has, and a link whose topic is not chosen."""
    groups = group_questions()
    assert sorted(name for group in groups.values() for name in group) == sorted(QUESTIONS)
    assert Topic.OTHER not in groups
    app = opened(view="Layers", question="Margins")
    assert app.segmented_control(key="topic").value == "Robustness"
    offered = [f"{format_name(name)}: {record_of(name).asks}" for name in groups[Topic.ROBUSTNESS]]
    assert app.selectbox(key="question").options == offered
    assert max(map(len, offered)) < 45, "the width of a phone's controls"
    said = [one.value.replace("\\", "") for one in app.caption]
    assert summary(QUESTIONS["margins"]) in said
    assert app.query_params["question"] == "Margins"


def test_another_topic_begins_with_its_first_question_and_the_link_names_that_alone(opened) -> None:
    """Catches a question of the former topic that stays, and an address that a topic makes longer."""
    app = opened(view="Layers", question="Margins")
    app.segmented_control(key="topic").set_value("Image set").run()
    assert app.selectbox(key="question").value == "Decomposition"
    assert app.query_params["question"] == "Decomposition"
    app.segmented_control(key="topic").set_value("Representations").run()
    assert app.selectbox(key="question").value == "Probes"
    assert not {"topic", "question"} & set(app.query_params)


@pytest.mark.parametrize(
    ("linked", "chosen", "target"),
    [("fish", "fish", "fish"), ("3", "car", "car"), ("Fish", "fish", "fish"), ("top", "", "top")],
)
def test_a_class_is_chosen_from_a_list_and_links_name_it_as_commands_do(
    opened, monkeypatch, linked, chosen, target
) -> None:
    """Catches a text field that holds "top" and does not say which class that is."""
    asked_for: list[LayerQuery] = []
    monkeypatch.setattr(inside, "show", lambda query, *_: asked_for.append(query))
    app = opened(view="Layers", question="Modes", **{"modes.of": linked})
    box = app.selectbox(key="modes.of")
    predicted = gallery_of("scenes", "adversarial").predictions.predicted
    names = cache.load_classifier("scenes").names.short
    assert box.options == [f"Most often predicted ({names[np.bincount(predicted).argmax()]})", *names]
    assert box.value == chosen
    assert asked_for[-1].parameters["of"] == target
    assert app.query_params.get("modes.of", "") == chosen
    assert not app.warning


def test_an_unknown_class_of_a_link_is_said(opened) -> None:
    app = opened(view="Layers", question="Modes", **{"modes.of": "unicorn"})
    assert any("names “unicorn”" in one.value for one in app.warning)


def test_a_class_whose_name_means_the_prediction_is_asked_for_by_its_index() -> None:
    """Catches a class called top that cannot be chosen, and an index for a usual name."""
    names = ("crane", "crane, machine", "top", "polar bear, ice bear")
    named = SimpleNamespace(name="a network", categories=names, names=ClassNames(names))
    assert [choice._name_target(named, k) for k in range(4)] == ["crane", "crane, machine", "2", "polar bear"]


def test_attacks_and_kinds_of_data_are_chosen_in_words_and_the_link_keeps_their_codes(opened) -> None:
    """Catches a comma list of codes, in which an error is typed, and bare names of arguments as labels."""
    app = opened(view="Layers", question="Attacks", **{"attacks.names": "pgd,best"})
    assert any("names “best”" in one.value for one in app.warning)
    app = opened(view="Layers", question="Attacks", **{"attacks.names": "pgd"})
    attacks = app.multiselect(key="attacks.names")
    assert (attacks.label, attacks.options) == ("Attacks", ["FGSM", "PGD", "Langevin"])
    assert attacks.value == ["pgd"]
    assert app.query_params["attacks.names"] == "pgd"
    kinds = opened(view="Layers", question="Memorisation").multiselect(key="memorisation.kinds")
    assert kinds.label == "Kinds of training data"
    assert kinds.value == ["true", "corrupted", "random_labels"]
    assert kinds.options[0] == "True labels"


def test_labels_name_parameters_that_exist() -> None:
    """Catches a label that no field has, and one that two fields of a question share."""
    names = {name: [p.name for p in list_parameters(QUESTIONS[name])] for name in QUESTIONS}
    assert set(words.LABELS) <= {one for own in names.values() for one in own}
    for question, own in names.items():
        assert {*record_of(question).labels, *record_of(question).lists} <= set(own), question
    for question, own in names.items():
        labels = [words.find_label(question, one) or format_name(one) for one in own]
        assert len(set(labels)) == len(labels), question


@pytest.mark.parametrize("question", [name for name in QUESTIONS if list_parameters(QUESTIONS[name])])
def test_every_field_of_a_question_says_what_it_means(opened, question) -> None:
    """Catches a field without its tooltip."""
    app = opened(view="Layers", question=format_name(question))
    fields = [w for kind in ("number_input", "selectbox", "toggle", "text_input", "multiselect") for w in app.get(kind)]
    helps = {w.key: w.help for w in fields if w.key and w.key.startswith(f"{question}.")}
    meant = {p.name: choice.CLASS_HELP if p.default == TOP else p.help for p in list_parameters(QUESTIONS[question])}
    assert helps == {f"{question}.{name}": meaning for name, meaning in meant.items()}
    assert all(helps.values())
    if question == "memorisation":
        assert helps["memorisation.rate"] == "Learning rate of Adam."


def test_another_classifier_is_compared_with_itself_again(opened, workspace) -> None:
    """Catches a comparison with the classifier chosen before, which nobody asked for; a chosen one stays."""
    (workspace / "models").mkdir()
    (workspace / "models" / "other.py").write_text(OTHER, encoding="utf-8")
    app = opened(view="Layers", question="Similarity")
    assert app.selectbox(key="layers.other").value == "scenes"
    settled(app.selectbox(key="classifier").set_value("models/other.py").run())
    assert app.selectbox(key="layers.other").value == "models/other.py"
    settled(app.selectbox(key="layers.other").set_value("scenes").run())
    settled(app.selectbox(key="classifier").set_value("scenes:blind").run())
    assert app.selectbox(key="layers.other").value == "scenes"
