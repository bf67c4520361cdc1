"""The page Design, run as Streamlit runs it: what is chosen is in the study file, and the file is what is shown."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.design.settings import CONTACT
from dashboard.design.steps import PARTS, STEPS
from study.plan import config
from study.plan.draft import MISSING, StudyDraft
from study.plan.templates import TEMPLATES, path_of
from tests.dashboard.conftest import made
from tests.dashboard.views.conftest import DEMO, Open, checked


def named(widgets: object, label: str) -> object:
    return next(one for one in widgets if one.label == label)  # type: ignore[attr-defined]


def settle(app: AppTest) -> AppTest:
    app.run()
    assert not app.exception
    return app


def test_a_preview_follows_the_file(open_page: Open, mine: Path) -> None:
    """Catches a preview that waits for a click, or shows the file as it was."""
    draft = StudyDraft.read(mine)
    few = {"sets.pool.size": 160, "sets.standard.size": 160, "sets.adversarial.size": 160, "trials.categories": 2}
    method = {"saliency.method": "gradient", "saliency.parameters": {}}
    for place, value in {"conditions": ["none"], **method, **few}.items():
        draft.set(place, value)
    draft.save(mine)
    app = open_page(study="mine", part="Trials")
    assert any("A trial is shown here as soon as the check" in one.value for one in app.caption)
    assert shown_conditions(made(checked(app))) == ["No explanation"]
    draft.set("conditions", ["none", "saliency"])
    draft.save(mine)
    assert shown_conditions(made(settle(app))) == ["No explanation", "Saliency maps"]
    assert named(app.button, "Another category")


def shown_conditions(app: AppTest) -> list[str]:
    """The conditions of which a trial is drawn."""
    return [
        name
        for one in app.markdown
        if (name := one.value.strip("*")) in ("No explanation", "Saliency maps") and name != one.value
    ]


def test_a_link_to_a_study_that_came_with_foretell_begins_a_copy(open_page: Open, mine: Path) -> None:
    """Catches the sentence that it does not exist, a copy of another one, and one's own study in its place."""
    app = open_page(study="two-ais-blind")
    assert named(app.selectbox, "Study").value == "A new study"  # type: ignore[attr-defined]
    assert not app.warning
    assert Path(named(app.radio, "Start from").value).stem == "two-ais-blind"  # type: ignore[attr-defined]
    unknown = open_page(study="nowhere")
    assert [one.value for one in unknown.warning] == ["There is no study file “nowhere” here."]
    assert named(unknown.selectbox, "Study").value == "A new study"  # type: ignore[attr-defined]


def test_the_chosen_template_shows_what_it_measures(open_page: Open) -> None:
    """Catches a screenshot or a description of another template than the chosen one."""
    app = open_page()
    chosen = named(app.radio, "Start from")
    assert chosen.value.stem == "demo"  # type: ignore[attr-defined]
    chosen.set_value(path_of("reliance")).run()  # type: ignore[attr-defined]
    assert TEMPLATES["reliance"].measures in [text.value for text in app.markdown]
    assert any("After Schemmer et al." in text.value for text in app.caption)


def test_a_new_study_is_a_file_without_the_templates_contact(open_page: Open, workspace: Path) -> None:
    """Catches the demo's made-up ethics approval in front of real participants."""
    app = open_page()
    named(app.text_input, "Name").input("mine")  # type: ignore[attr-defined]
    named(app.text_input, "Title").input("My *study*")  # type: ignore[attr-defined]
    named(app.button, "Create study").click()  # type: ignore[attr-defined]
    settle(app)
    settings = config.read(workspace / "studies" / "mine.toml")
    assert settings.study.title == "My *study*"
    assert settings.contact.email == ""
    assert named(app.selectbox, "Study").value == "mine"  # type: ignore[attr-defined]


@pytest.mark.parametrize("section", PARTS)
def test_a_run_sends_no_value_that_the_page_has(open_page: Open, mine: Path, section: str) -> None:
    """Catches a former value that a run sends once more, begun before a change and shown after it: it undid the change.

    The next run got it back from the browser as if it had been typed.
    """
    app = settle(open_page(study="mine", part=section))
    drawn = [*app.number_input, *app.text_input, *app.text_area, *app.selectbox, *app.multiselect, *app.toggle]
    sent = [one.label for one in drawn if one.proto.set_value]
    assert drawn
    assert not sent


@pytest.mark.parametrize(
    ("section", "widget", "choice", "settings"),
    [
        ("Trials", "by", "By name", {"trials.categories": ["fish", "boat"]}),
        ("Trials", "strata", True, {"trials.strata": {"measure": "entropy"}}),
        ("Trials", "blocks", True, {"blocks": {"training": 1, "test": 2}}),
        ("Trials", "method", "gradient", {"saliency.method": "gradient", "saliency.parameters": {"noise": 0.1}}),
        ("Procedure", "sittings", True, {"sittings": {"count": 3}}),
        ("Plan", "contrasts", "Contrasts of your own", {"analysis.contrasts": [{"more": "both", "less": "saliency"}]}),
        ("Plan", "stopping", True, {"analysis.stopping": {"looks": [7, 40], "contrast": {"more": "both"}}}),
    ],
)
def test_a_choice_that_the_file_has_already_changes_nothing(
    open_page: Open, mine: Path, section: str, widget: str, choice: object, settings: dict[str, Any]
) -> None:
    """Catches a choice that resets what the file has already: made in another window, or sent twice by the browser."""
    app = open_page(study="mine", part=section)
    draft = StudyDraft.read(mine)
    for place, value in settings.items():
        draft.set(place, value)
    draft.save(mine)
    before = mine.read_text()
    key = f"design.mine.{widget}"
    next(one for one in (*app.radio, *app.toggle, *app.selectbox) if one.key == key).set_value(choice)  # type: ignore[union-attr]
    settle(app)
    assert mine.read_text() == before


def test_blocks_of_training_and_test_are_a_choice(open_page: Open, mine: Path) -> None:
    """Catches blocks that cannot be made, changed or removed, and a number of trials that no participant has."""
    app = open_page(study="mine", part="Trials")
    (switch,) = (one for one in app.toggle if one.key == "design.mine.blocks")
    switch.set_value(True)
    settle(app)
    assert StudyDraft.read(mine).get("blocks") == {"training": 5, "test": 7, "rounds": 1}
    named(app.number_input, "Rounds").set_value(2)  # type: ignore[attr-defined]
    settle(app)
    assert StudyDraft.read(mine).get("blocks.rounds") == 2
    said = " ".join(one.value for one in app.markdown)
    assert "**24 trials** for each participant: 2 × (5 training + 7 test), drawn from 30 (10 categories" in said
    named(app.number_input, "Rounds").set_value(9)  # type: ignore[attr-defined]
    settle(app)
    assert any("are 108, but the study has 30" in one.value for one in app.warning)
    (switch,) = (one for one in app.toggle if one.key == "design.mine.blocks")
    switch.set_value(False)
    settle(app)
    assert StudyDraft.read(mine).get("blocks") is MISSING


def test_the_threshold_is_asked_for_where_it_is_used(open_page: Open, mine: Path) -> None:
    """Catches a setting without effect: only the policy First stops at a probability."""
    for policy in ("best", "first"):
        draft = StudyDraft.read(mine)
        draft.set("teaching.policy", policy)
        draft.save(mine)
        labels = [one.label for one in open_page(study="mine", part="Trials").number_input]
        assert ("Learner's probability must exceed" in labels) is (policy == "first")


def test_the_damping_of_the_prior_is_a_setting_of_examples(open_page: Open, mine: Path) -> None:
    """Catches a warning whose remedy the page does not have; a prior file has its own damping."""
    for prior, is_offered in ((None, True), ("own.safetensors", False)):
        draft = StudyDraft.read(mine)
        if prior is not None:
            draft.set("teaching.prior", prior)
            draft.save(mine)
        labels = [one.label for one in open_page(study="mine", part="Trials").number_input]
        assert ("Damping of the prior" in labels) is is_offered


def test_a_text_that_is_written_stays_where_it_is(open_page: Open, mine: Path) -> None:
    """Catches a field that moves to the top once it is written, so that the next words go into another one."""
    app = open_page(study="mine", part="Texts")
    before = [one.label for one in app.text_area]
    named(app.text_area, "Question").input("What did it say, {Name}?")  # type: ignore[attr-defined]
    settle(app)
    assert [one.label for one in app.text_area] == before
    captions = " ".join(one.value for one in app.caption)
    assert "Participants would read {Name} as it is written: this text has no placeholders." in captions
    named(app.text_area, "Feedback").input("It said {nom}.")  # type: ignore[attr-defined]
    settle(app)
    assert "its placeholders are {name}." in " ".join(one.value for one in app.caption)


def test_a_bad_name_is_one_sentence(open_page: Open, workspace: Path) -> None:
    app = open_page()
    named(app.text_input, "Name").input("../evil")  # type: ignore[attr-defined]
    named(app.button, "Create study").click()  # type: ignore[attr-defined]
    settle(app)
    assert "cannot be in a link" in app.error[0].value
    assert not list(workspace.rglob("*.toml"))


@pytest.mark.parametrize("part", PARTS)
def test_every_section_opens(open_page: Open, mine: Path, part: str) -> None:
    before = mine.read_text()
    app = open_page(study="mine", part=part)
    assert not app.error
    assert mine.read_text() == before  # looking changes nothing


def test_settings_are_drawn_in_reading_order(open_page: Open, mine: Path) -> None:
    """Catches settings drawn column by column, as a phone then shows them."""
    drawn = open_page(study="mine", part="Procedure").text_input
    contact = [one.label for one in drawn if one.label in {s.label for s in CONTACT}]
    assert contact == [setting.label for setting in CONTACT]


def test_next_leads_through_every_part(open_page: Open, mine: Path) -> None:
    """Catches a button that leaves out a part, or one after the last, and a step that does not follow."""
    app, seen = open_page(study="mine"), [PARTS[0]]
    while buttons := [one for one in app.button if one.key == "design_next"]:
        seen.append(buttons[0].label.removeprefix("Next: "))
        buttons[0].click()
        settle(app)
        assert app.button_group(key="design_step").value == next(step for step in STEPS if seen[-1] in STEPS[step])
        assert app.query_params["part"] == seen[-1]
    assert tuple(seen) == PARTS


def test_a_choice_is_a_line_of_the_file_and_can_be_undone(open_page: Open, mine: Path) -> None:
    before = mine.read_text()
    app = open_page(study="mine", part="Trials")
    named(app.number_input, "Trials of each type in each category").set_value(2)  # type: ignore[attr-defined]
    settle(app)
    assert config.read(mine).trials.per_type == 2
    assert any("60 trials" in text.value for text in app.markdown)
    assert "per_type = 2" in app.code[0].value
    named(app.button, "Undo").click()  # type: ignore[attr-defined]
    settle(app)
    assert mine.read_text() == before


def test_a_file_edited_by_hand_is_what_is_shown(open_page: Open, mine: Path) -> None:
    """Catches a widget that keeps what it showed before the file changed."""
    app = open_page(study="mine", part="Trials")
    mine.write_text(mine.read_text().replace("practice = 3", "practice = 5"))
    settle(app)
    assert named(app.number_input, "Practice trials").value == 5  # type: ignore[attr-defined]


def test_what_is_wrong_is_said_where_it_is(open_page: Open, mine: Path) -> None:
    app = open_page(study="mine", part="Procedure")
    named(app.text_input, "E-mail address").input("nobody")  # type: ignore[attr-defined]
    settle(app)
    assert "contact.email" in app.warning[0].value
    assert any(caption.value.startswith(":red[") for caption in app.caption)
    named(app.text_input, "E-mail address").input("ada@example.org")  # type: ignore[attr-defined]
    settle(app)
    assert not app.warning
    assert config.read(mine).contact.email == "ada@example.org"


def test_an_emptied_limit_leaves_the_file(open_page: Open, mine: Path) -> None:
    app = open_page(study="mine", part="Plan")
    label = "A response is too fast below (ms)"
    named(app.number_input, label).set_value(150.0)  # type: ignore[attr-defined]
    settle(app)
    assert config.read(mine).analysis.exclusions.fastest_ms == 150
    named(app.number_input, label).set_value(None)  # type: ignore[attr-defined]
    settle(app)
    assert "analysis" not in tomllib.loads(mine.read_text())


def test_another_heatmap_method_begins_with_its_own_parameters(open_page: Open, mine: Path) -> None:
    """Catches parameters of the last method, which the new one does not take."""
    app = open_page(study="mine", part="Trials")
    named(app.selectbox, "Heatmap method").set_value("integrated_gradients")  # type: ignore[attr-defined]
    settle(app)
    named(app.number_input, "Steps").set_value(48)  # type: ignore[attr-defined]
    settle(app)
    saliency = config.read(mine).saliency
    assert (saliency.method, saliency.parameters) == ("integrated_gradients", {"steps": 48})
    quadrature = named(app.selectbox, "Quadrature")
    assert quadrature.options == ["Midpoint", "Gauss Legendre"]  # type: ignore[attr-defined]


def test_conditions_are_written_in_the_order_of_the_catalogue(open_page: Open, mine: Path) -> None:
    app = open_page(study="mine", part="Trials")
    named(app.multiselect, "Conditions").set_value(["both", "random_maps", "none"])  # type: ignore[attr-defined]
    settle(app)
    assert config.read(mine).conditions == ("none", "both", "random_maps")


def test_a_text_of_the_study_replaces_the_default_and_goes_again(open_page: Open, mine: Path) -> None:
    app = open_page(study="mine", part="Texts")
    field = named(app.text_area, "Question")
    default = field.value  # type: ignore[attr-defined]
    field.input("Which name did it give?")  # type: ignore[attr-defined]
    settle(app)
    assert config.read(mine).texts == {"question": "Which name did it give?"}
    named(app.text_area, "Question").input(default)  # type: ignore[attr-defined]
    settle(app)
    assert config.read(mine).texts == {}


def test_a_file_that_is_no_toml_opens_as_text(open_page: Open, mine: Path) -> None:
    """Catches a typing error in the file that takes the page away from its author."""
    mine.write_text("[study\nname = 3")
    app = open_page(study="mine")
    assert "not valid TOML" in app.error[0].value
    named(app.text_area, "Study file").input(DEMO.read_text().replace('name = "demo"', 'name = "mine"'))  # type: ignore[attr-defined]
    settle(app)
    named(app.button, "Save").click()  # type: ignore[attr-defined]
    settle(app)
    assert not app.error
    assert config.read(mine).study.name == "mine"


def test_fields_of_a_heatmap_method_say_what_they_mean(open_page: Open, mine: Path) -> None:
    draft = StudyDraft.read(mine)
    for place, value in {"saliency.method": "occlusion", "saliency.parameters": {}}.items():
        draft.set(place, value)
    draft.save(mine)
    app = open_page(study="mine", part="Trials")
    helps = {one.label: one.help for one in (*app.number_input, *app.selectbox)}
    assert helps["Window"] == "Side of the window, px; 0 is an eighth of the image's shorter side."
    assert helps["Output"] == "Output of the class that is explained: its logit or probability."


def test_a_study_that_begins_in_explore_has_its_network_images_and_method(open_page: Open, workspace: Path) -> None:
    (workspace / "pictures" / "flat" / "bird").mkdir(parents=True)
    app = open_page(study="A new study", model="scenes", images_of="flat", explain_by="grad_cam")
    assert "Grad-CAM" in app.info[0].value
    named(app.text_input, "Name").input("mine")  # type: ignore[attr-defined]
    named(app.button, "Create study").click()  # type: ignore[attr-defined]
    settle(app)
    settings = config.read(workspace / "studies" / "mine.toml")
    assert settings.saliency.method == "grad_cam"
    assert settings.sets.pool.settings == {"path": "../pictures/flat"}


def test_the_templates_texts_follow_the_language_and_own_texts_stay(open_page: Open, mine: Path) -> None:
    """Catches a German study with an English check and questionnaire, and a title of one's own that is replaced."""
    before = config.read(mine)
    app = open_page(study="mine")
    named(app.selectbox, "Language of the experiment").set_value("de")  # type: ignore[attr-defined]
    settle(app)
    now = config.read(mine)
    assert now.study.title == "My study"
    assert now.check.questions[0].answer == "Den Namen, den die KI dem Bild gegeben hat"
    assert [one.text for one in now.questionnaire][1] == "Wie haben Sie entschieden? Ein Satz genügt."
    named(app.selectbox, "Language of the experiment").set_value("en")  # type: ignore[attr-defined]
    settle(app)
    assert config.read(mine) == before
