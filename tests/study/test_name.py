"""The task `name`: a text from the participant's page to the export, and the codes that two raters give it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.special import expit
from sklearn.metrics import cohen_kappa_score

from core.errors import ForetellError
from study.analysis.planned.analysis import execute
from study.analysis.responses import reading
from study.bundle import Bundle
from study.collection.export import export
from study.collection.integrity import find_faults, find_unplayable
from study.collection.replay import describe_response
from study.names.agreement import measure_agreement
from study.names.simulated import choose_code, describe_unit, draw_text
from study.participation.payloads import TrialResponse
from study.plan.coding import CODES
from study.plan.config import StudyConfig
from study.service import Service
from study.simulate import simulate
from study.simulate_raters import SIMULATED, simulate_raters
from tests.study.names import write_names
from tests.study.participants import answer, everything, query, tamper, to_trials
from tests.study.unit_studies import NAMES, UNITS, build_units

EYES = "عيون 👁️‍🗨️ = eyes"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build_units(tmp_path_factory.mktemp("names"), NAMES)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service(tmp_path / "home") as running:
        yield running


@pytest.fixture
def study(service: Service, names: Bundle) -> str:
    return service.researcher.open_study(names.folder, per_condition=4)


def test_a_trial_shows_the_references_and_asks_for_a_text(names: Bundle, service: Service, study: str) -> None:
    """Catches images that one condition loads and the other does not, those that activate the unit least where they are
    not shown, what the unit is in what the page knows, and feedback on a text that nobody has coded."""
    assert len(names.manifest.trials) == 3
    assert list(find_unplayable(names.manifest)) == []
    shown = []
    for _ in range(8):
        token = service.participant.begin(study)
        state = to_trials(service, token)
        trial, frozen = state["trial"], names.manifest.practice[0]
        assert frozen.unit is not None
        shown.append(trial["target"] is not None)
        assert (trial["map"], trial["part"], trial["reveals"]) == (frozen.assets.target_map, "name", False)
        assert trial["options"] == [{"name": "Confirm", "samples": []}]
        assert not {"activations", "least", "most", "layer", "condition"} & {*trial}
        loaded = set(service.participant.preload(token))
        assert {frozen.assets.target, frozen.assets.target_map} <= loaded
        ack = service.participant.record(token, answer(0, "1", text="corners"))
        assert (ack.code, ack.feedback) == (201, None)
    assert sorted(shown) == [False] * 4 + [True] * 4


def test_a_text_is_stored_once_as_it_was_written(service: Service, study: str) -> None:
    """Catches spaces around a text, a text that is stored twice or changed by a second attempt, and one that another
    task takes; what is refused is kept with the conflicts, shortened."""
    token = service.participant.begin(study)
    to_trials(service, token)
    once = answer(0, "1", text=f"  {EYES}\n ")
    assert service.participant.record(token, once).code == 201
    assert service.participant.record(token, once).code == 200
    again = once.model_copy(update={"text": "another"})
    assert service.participant.record(token, again).code == 409
    assert service.participant.record(token, answer(0, "1", text=EYES)).code == 409
    assert query(service, "SELECT text, choice, side FROM response") == [(EYES, "a", "1")]
    for text, said in (
        (None, "write a few words"),
        (" \n ", "write a few words"),
        ("\u200b\u2060", "no visible character"),
        ("x" * 201, "has 201 characters"),
        ("x" * 60_000, "has 60,000 characters"),
        ("a\x00b", "control characters"),
    ):
        ack = service.participant.record(token, answer(1, "1", text=text))
        assert (ack.code, said in ack.message) == (422, True), ack.message
    assert service.participant.record(token, answer(1, "2", text="x")).code == 422
    assert service.participant.record(token, answer(1, "1", text="👁" * 200)).code == 201
    reasons = query(service, "SELECT reason, length(payload_json) FROM response_conflict")
    assert (
        sorted(reason for reason, _ in reasons) == ["answered before"] * 2 + ["no such option"] + ["no such text"] * 6
    )
    assert max(length for _, length in reasons) < 1_500
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []
    tamper(service, "UPDATE response SET text = 'mouths' WHERE trial_index = 0")
    faults = service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of)))
    assert any("was changed after it was recorded" in fault for fault in faults)


@pytest.mark.parametrize("text", ['"' + "x" * 65_537 + '"', '"\\ud800"', "7", '["x"]', "{}"])
def test_what_is_no_text_is_refused_with_the_request(text: str) -> None:
    """Catches a text beyond 64 KB that reaches the database, half a character, and something else than a text."""
    sent = json.loads(answer(0, "1").model_dump_json(exclude={"text"}))
    body = json.dumps(sent)[:-1] + f', "text": {text}}}'
    with pytest.raises(ValidationError):
        TrialResponse.model_validate_json(body)


def test_another_task_takes_no_text(service: Service, tmp_path: Path) -> None:
    """Catches a text that is stored, and exported, in a study that never asked for one."""
    study = service.researcher.open_study(build_units(tmp_path / "units").folder, per_condition=1)
    token = service.participant.begin(study)
    to_trials(service, token)
    ack = service.participant.record(token, answer(0, "left", text="eyes"))
    assert (ack.code, ack.message) == (422, "This study asks for an option, not for a text.")


def test_raters_are_blinded_and_a_change_of_mind_is_kept(names: Bundle, service: Service, study: str) -> None:
    """Catches the same order for both raters, an order that changes, a code of the other rater or a participant in what
    a rater gets, a code that is stored twice, a change that replaces the first code, and a third rater."""
    for number in range(4):
        write_names(service, study, [f"text {number}"])
    researcher, manifest = service.researcher, names.manifest
    lists = {rater: researcher.load_coding(study, rater=rater) for rater in ("Ada", "Bo")}
    orders = [[text.id for text in one.texts] for one in lists.values()]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    assert [text.id for text in researcher.load_coding(study, rater="Ada").texts] == orders[0]
    assert len(orders[0]) == 4 * len(manifest.trials)  # without practice
    sessions = [row[0] for row in query(service, "SELECT session_id FROM session")]
    assert not any(session in str(lists["Ada"]) for session in sessions)
    first = orders[0][0]
    assert researcher.code_texts(study, {first: "partly"}, rater="Ada") == 1
    assert researcher.code_texts(study, {first: "partly"}, rater="Ada") == 0
    assert researcher.code_texts(study, {first: "matches"}, rater=" Ada ") == 1
    assert query(service, "SELECT rater, revision, code FROM response_code ORDER BY revision") == [
        ("Ada", 1, "partly"),
        ("Ada", 2, "matches"),
    ]
    assert researcher.load_coding(study, rater="Ada").n_coded == 1
    assert researcher.load_coding(study, rater="Bo").n_coded == 0
    researcher.code_texts(study, {first: "does_not_match"}, rater="Bo")
    for work in (
        lambda: researcher.load_coding(study, rater="Cy"),
        lambda: researcher.code_texts(study, {first: "matches"}, rater="Cy"),
    ):
        with pytest.raises(ForetellError, match="Ada and Bo code the texts of names, and a study has two raters"):
            work()
    for given, said in (({first: "maybe"}, "none of the codes"), ({"x": "matches"}, "no such text")):
        with pytest.raises(ForetellError, match=said):
            researcher.code_texts(study, given, rater="Ada")
    with pytest.raises(ForetellError, match="Give the rater a name"):
        researcher.load_coding(study)
    assert researcher.remove_rater(study, "Bo", "wrong person") == 1
    assert researcher.load_coding(study, rater="Cy").n_coded == 0


def test_a_response_is_correct_once_both_raters_coded_a_match(service: Service, study: str, tmp_path: Path) -> None:
    """Catches a score from one rater, results of texts that are not all coded, an agreement that opens before, a code
    that changes after it, a formula in the file, and columns that are not the last."""
    for number in range(4):
        write_names(service, study, ["practice", f"=1+{number}", "edges", "spots"])
    researcher = service.researcher
    texts = {text.id: text for text in researcher.load_coding(study, rater="Ada").texts}
    assert researcher.responses(study)["correct"].isna().all()
    researcher.code_texts(study, dict.fromkeys(texts, "matches"), rater="Ada")
    frame = researcher.responses(study)
    assert frame["correct"].isna().all()
    said = "12 of 12 texts are not coded by both raters yet \\(12 by the second rater\\)"
    with pytest.raises(ForetellError, match=said):
        reading.prepare(frame)
    progress = researcher.load_coding_progress(study)
    assert progress.describe() == "Of 12 texts, not coded yet: 12 by a second rater."
    with pytest.raises(ForetellError, match="The agreement opens once both raters have coded every text"):
        researcher.open_agreement(study)
    second = {name: "partly" if one.text == "spots" else "matches" for name, one in texts.items()}
    researcher.code_texts(study, second, rater="Bo")
    frame = researcher.responses(study)
    assert frame["correct"].tolist() == [int(text != "spots") for text in frame["text"]]
    assert frame["choice"].tolist() == ["correct" if one else "incorrect" for one in frame["correct"]]
    first = [*frame].index("text")  # later columns come after these
    assert [*frame][first : first + 4] == ["text", "code_1", "code_2", "attribute"]
    agreement, differences = researcher.open_agreement(study)
    assert (agreement.kappa, agreement.share) == (0.0, 8 / 12)  # one rater's codes say nothing of the other's
    assert differences["text"].tolist() == ["spots"] * 4
    with pytest.raises(ForetellError, match="codes can no longer be changed"):
        researcher.code_texts(study, dict.fromkeys(texts, "partly"), rater="Ada")
    assert "'=1+0" in export(researcher, study, tmp_path / "out" / "responses.csv").read_text(encoding="utf-8")
    dictionary = json.loads((tmp_path / "out" / "data-dictionary.json").read_text(encoding="utf-8"))
    assert {"text", "code_1", "code_2"} <= {*dictionary}
    assert reading.prepare(frame).frame["code_2"].tolist() == frame["code_2"].tolist()


def test_a_replay_shows_what_was_written_and_calls_it_neither_right_nor_wrong(service: Service, study: str) -> None:
    """Catches the word on the button in the place of the text, and a text that counts as correct before it is coded."""
    write_names(service, study, [EYES])
    service.researcher.close_study(study)
    participant = service.researcher.responses(study)["participant"].iloc[0]
    replayed = service.researcher.replay(study, participant)
    assert [(one.choice, one.correct) for one in replayed.trials] == [(EYES, None)] * 4
    assert all(describe_response(one).startswith(f"“{EYES}”, 0.51 s") for one in replayed.trials)


def test_a_withdrawal_erases_text_and_codes_also_on_disk(service: Service, study: str) -> None:
    """Catches a text or its codes that stay in a table, in the audit trail or in the bytes of the file."""
    token = write_names(service, study, ["a very private sentence"])
    write_names(service, study, ["this one stays"])
    texts = service.researcher.load_coding(study, rater="Ada").texts
    service.researcher.code_texts(study, {text.id: "matches" for text in texts}, rater="Ada")
    assert query(service, "SELECT count(*) FROM response_code") == [(6,)]
    service.participant.withdraw(service.participant.state(token)["withdrawal_code"])
    assert query(service, "SELECT count(*) FROM response_code") == [(3,)]
    assert "private sentence" not in everything(service)
    assert len(service.researcher.load_coding(study, rater="Ada").texts) == 3
    home = service.workspace.home
    service.close()
    assert not any(b"private sentence" in file.read_bytes() for file in home.glob("foretell.db*"))


def test_kappa_is_that_of_another_package_and_of_closed_forms() -> None:
    """Independent raters have 0, raters who always agree 1; else scikit-learn's value, inside its interval.

    Catches codes that are crossed the wrong way, codes that nobody gave, and a number where there is none.
    """
    first, second = (
        ["a"] * 6 + ["b"] * 12 + ["c"] * 18,
        (["a"] * 1 + ["b"] * 2 + ["c"] * 3) + (["a"] * 2 + ["b"] * 4 + ["c"] * 6) + (["a"] * 3 + ["b"] * 6 + ["c"] * 9),
    )
    independent = measure_agreement(first, second, "abcd")
    assert independent.kappa == pytest.approx(0.0, abs=1e-12)
    assert measure_agreement(first, first, "abcd").kappa == pytest.approx(1.0)
    rng = np.random.default_rng(5)
    one = rng.choice([*"abc"], 80, p=[0.5, 0.3, 0.2])
    two = np.where(rng.random(80) < 0.6, one, rng.choice([*"abc"], 80))
    made = measure_agreement(one.tolist(), two.tolist(), "abc")
    assert made.kappa == pytest.approx(cohen_kappa_score(one, two), rel=1e-12)
    assert made.low is not None
    assert made.high is not None
    draws = rng.integers(0, 80, (2_000, 80))
    spread = np.std([cohen_kappa_score(one[rows], two[rows]) for rows in draws])
    assert (made.high - made.low) / 2 == pytest.approx(1.96 * spread, rel=0.1)  # the bootstrap's width
    for given, said in (
        (([], []), "no text has the codes of both raters yet"),
        ((["a"], ["b"]), "1 text has the codes of both raters"),
        ((["a"] * 9, ["a"] * 9), "both raters gave every text the code 'a'"),
    ):
        undefined = measure_agreement(*given, "abc")
        assert undefined.kappa is None
        assert said in undefined.describe()
    constant = measure_agreement(["a"] * 9, ["b"] * 9, "abc")
    assert constant.kappa == 0.0
    assert constant.describe().endswith("these codes do not vary enough for an interval.")


def test_simulated_texts_say_so_and_simulated_raters_read_them(names: Bundle) -> None:
    """Catches a simulated text that passes for a participant's, and raters who know what they did not read."""
    rng = np.random.default_rng(1)
    for trial in names.manifest.trials:
        assert trial.unit is not None
        unit = trial.unit.name
        right, wrong = (draw_text(unit, one, rng) for one in (True, False))
        assert right == f"simulated: {describe_unit(unit)}"
        assert wrong.startswith("simulated: ")
        assert wrong != right
        assert choose_code(right, unit, CODES, CODES[:1], 1.0, rng) == "matches"
        assert choose_code(wrong, unit, CODES, CODES[:1], 1.0, rng) in ("partly", "does_not_match")
        codes = [choose_code(right, unit, CODES, CODES[:1], 0.7, rng) for _ in range(2_000)]
        assert np.mean([code == "matches" for code in codes]) == pytest.approx(0.7, abs=0.04)


def test_a_planted_effect_is_recovered_through_texts_codes_and_models(service: Service, tmp_path: Path) -> None:
    """Simulate, code, analyse. The oracle is a closed form: the mean of expit(gap / 2) with images of both ends, else
    one half, for learners whose deviations are small.

    Catches scores that are not of the texts, raters who code other texts, and a model that is not planned.
    """
    bundle = build_units(tmp_path / "built", NAMES.replace("channels = 3", "channels = 8"))
    study = service.researcher.open_study(bundle.folder, per_condition=1)
    simulate(service, study, 60, {"bayesian_learner": 1.0}, seed=4)
    simulate_raters(service.researcher, study, 1.0, seed=1)
    assert simulate_raters(service.researcher, study, 1.0, seed=1) == 0
    agreement, _ = service.researcher.open_agreement(study, SIMULATED)
    assert agreement.kappa == pytest.approx(1.0)
    frame = service.researcher.responses(study, SIMULATED)
    write_names(service, study, ["of a real participant"])
    texts = service.researcher.load_coding(study, rater="Ada").texts
    service.researcher.code_texts(study, {text.id: "partly" for text in texts}, rater="Ada")
    both = service.researcher.responses(study, ("live", "sim")).set_index("mode")
    assert both.loc["live", "code_1"].tolist() == ["partly"] * 8
    assert both.loc["live", "code_2"].isna().all()
    assert both.loc["sim", "code_1"].tolist() == frame["code_1"].tolist()
    gaps = [trial.unit.gap for trial in bundle.manifest.trials if trial.unit]
    expected = {"none": 0.5, "examples": float(np.mean(expit(0.5 * np.array(gaps))))}
    for condition, rows in frame.groupby("condition"):
        assert rows["correct"].mean() == pytest.approx(expected[str(condition)], abs=4 * 0.5 / np.sqrt(len(rows)))
    plan = StudyConfig.model_validate(tomllib.loads(NAMES)).plan
    assert plan.models["explanation"] == "examples + (1 | participant) + (examples || category)"
    table = execute(reading.prepare(frame), plan).contrasts.set_index("contrast").loc["examples - none"]
    difference = 100 * (expected["examples"] - 0.5)
    assert table["points_low"] < difference < table["points_high"]
    assert table["points_low"] > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("references = 4", "references = 4\nper_unit = 2"), "in the task 'name' a unit has one trial"),
        (("[trials]", "[pacing]\ncatch = 1\n[trials]"), "an attention check asks for an option"),
        (("[trials]", '[keys]\nleft = "a"\nright = "l"\n[trials]'), "participants of the task 'name' type a text"),
        (("[trials]", "[pay]\nper_right = 1\nmost = 10\n[trials]"), "once its raters have coded it"),
        (("[trials]", '[coding]\ncodes = ["yes"]\n[trials]'), "at least 2 items"),
        (
            ("[trials]", '[coding]\ncodes = ["yes", "no"]\ncorrect = ["maybe"]\n[trials]'),
            "'maybe' is none of the codes",
        ),
        (("[trials]", '[coding]\ncodes = ["yes", "no"]\ncorrect = ["yes", "no"]\n[trials]'), "every code counts"),
        (("[trials]", '[coding]\ncodes = ["yes", "yes"]\ncorrect = ["yes"]\n[trials]'), "name each code once"),
        (("[trials]", '[coding]\ncodes = ["=x", "no"]\ncorrect = ["no"]\n[trials]'), "should match pattern"),
        (('["none", "examples"]', '["none", "saliency"]'), "'saliency' cannot go with the task 'name'"),
    ],
)
def test_what_does_not_go_with_texts_is_refused(change: tuple[str, str], said: str) -> None:
    """Catches a setting that would do nothing, or that needs a score before there is one."""
    assert change[0] in NAMES
    with pytest.raises(ValidationError, match=said):
        StudyConfig.model_validate(tomllib.loads(NAMES.replace(*change)))


def test_codes_belong_to_texts_alone_and_leave_other_studies_their_hash() -> None:
    """Catches a section that a study of options ignores, and a new key in the settings of every study."""
    with pytest.raises(ValidationError, match="coding: the task 'unit_choice' asks for no text"):
        StudyConfig.model_validate(tomllib.loads(UNITS + '[coding]\ncodes = ["yes", "no"]\ncorrect = ["yes"]\n'))
    for text in (UNITS, NAMES):
        assert "coding" not in StudyConfig.model_validate(tomllib.loads(text)).model_dump()
