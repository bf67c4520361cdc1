"""The Debugging view's rules: those of the workspace's files alone, and what the page shows against the verb."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from core.types import silent
from dashboard.explore.debugging import assertions
from dashboard.explore.debugging import view as debugging
from dashboard.explore.debugging.jobs import make_assertions_task
from dashboard.shared import cache
from dashboard.shared.jobs import Cancellation
from inquiry.assertions.assertions import BLOCK, AssertionQuery, assertion_files
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import FEW, settled
from tests.dashboard.views.test_debugging import _numbers, view
from tests.inquiry.test_assertions import RULES

__all__ = ["view"]  # the fixture
LINK = {"part": debugging.ASSERTIONS}
SEVERE = "as_sure_in_dim_light"


@pytest.fixture
def rules(workspace: Path) -> Path:
    """The file of the how-to page, where the page looks for it."""
    file = workspace / "rules" / "mine.py"
    file.parent.mkdir()
    file.write_text(RULES)
    return file


@pytest.fixture
def told(rules: Path, tmp_path: Path):
    """The verb's own table and report of these pictures."""
    settings = {"split": "adversarial", "size": FEW}
    asserted, _ = assertion_files(AssertionQuery(rules, settings=settings), tmp_path / "out")
    return asserted.table, asserted.report["assertions"]


def test_the_page_shows_what_the_verb_writes(view, told) -> None:
    """Catches a page of other pictures, of other rules, or with other limits than Wilson's."""
    table, report = told
    app = view(**LINK, rules="mine.py", rule=SEVERE)
    shown = next(one.value for one in app.table if "Rule" in one.value.columns)
    broken = {name: int((table[name] > 0).sum()) for name in report}
    of = {name: int(table[name].notna().sum()) for name in report}
    assert 0 < broken[SEVERE] < FEW
    low, high = proportion_confint(broken[SEVERE], FEW, method="wilson")
    row = list(report).index(SEVERE)
    assert shown["Rule"][row].startswith("As sure in dim light: Slightly less light reduces")
    said = f"{broken[SEVERE]} of {FEW}: {broken[SEVERE] / FEW:.1%} ({low:.1%} to {high:.1%})"
    assert shown["Broken by"][row] == said
    bar = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]
    np.testing.assert_allclose(_numbers(bar["x"]), [broken[name] / of[name] for name in report], atol=1e-6)
    ends = np.add(_numbers(bar["x"]), _numbers(bar["error_x"]["array"]))
    np.testing.assert_allclose(ends[row], high, atol=1e-6)
    categories, overall, pictures = (one.value for one in app.dataframe)
    assert overall["broken"].tolist() == list(broken.values())
    assert (categories["broken"].sum(), categories["applied"].sum()) == (broken[SEVERE], FEW)
    assert categories["share"].is_monotonic_decreasing
    np.testing.assert_allclose(pictures[SEVERE], table[SEVERE], atol=1e-6)


def test_the_worst_images_come_first_with_how_bad_they_are(view, told, rules: Path, monkeypatch) -> None:
    """Catches a gallery in another order, and one that shows pictures which keep to the rule."""
    seen: dict[str, object] = {}

    def kept(gallery, name, ranked, picked, lines) -> None:
        seen.update(ranked=ranked, lines=[lines(i) for i in ranked], picked=picked)

    monkeypatch.setattr("dashboard.explore.picker.show_ranked", kept)
    view(**LINK, rules="mine.py", rule=SEVERE)
    table, _ = told
    severities = table[SEVERE].to_numpy()
    assert sorted(seen["ranked"]) == np.flatnonzero(severities > 0).tolist()
    assert (np.diff(severities[seen["ranked"]]) <= 1e-9).all()
    first = seen["ranked"][0]
    assert seen["lines"][0][0] == f"broken by {severities.max():.3g}"
    row = table.iloc[first]
    assert (
        seen["lines"][0][1] == f"Labelled {row['label']}; the AI predicts {row['predicted']}, {row['confidence']:.0%}."
    )
    view(**LINK, rules="mine.py", rule="same_when_mirrored")
    assert {lines[0] for lines in seen["lines"]} == {"breaks it"}


def test_rules_are_chosen_in_words_and_the_link_keeps_their_names(view, rules: Path) -> None:
    """Catches code names on the page, and words in the link, which brings back nothing."""
    app = view(**LINK, rules="mine.py", rule="same_when_mirrored")
    choice = app.selectbox(key="rule")
    assert choice.value == "same_when_mirrored"
    assert {"As sure in dim light", "Same when mirrored"} <= set(choice.options)
    app = settled(choice.select(SEVERE).run())
    assert app.query_params["rule"] == SEVERE
    assert any("As sure in dim light, by labelled category" in caption.value for caption in app.caption)


def test_only_the_owners_files_are_offered_and_none_is_run_unasked(view, workspace: Path, rules: Path) -> None:
    """Catches a file that a link names, or that is run before somebody chose it."""
    ran = workspace / "ran"
    code = f"from pathlib import Path\nPath({str(ran)!r}).write_text('')\ndef rule(picture, answer):\n    return True\n"
    (workspace / "elsewhere.py").write_text(code)
    (rules.parent / "other.py").write_text(code)
    (rules.parent / "gone.py").symlink_to(workspace / "nothing.py")
    for link in ({}, {"rules": "../elsewhere.py"}, {"rules": str(workspace / "elsewhere.py")}):
        app = view(**LINK, **link)
        assert app.selectbox(key="rules").options == [assertions.NOT, assertions.READY, "mine.py", "other.py"]
        assert app.selectbox(key="rules").value == assertions.NOT
    assert not ran.exists()
    app = settled(app.selectbox(key="rules").select("other.py").run())
    assert ran.exists()
    assert "No image breaks it." in [caption.value for caption in app.caption]


def test_a_ready_made_assertion_runs_without_a_file(view, told) -> None:
    """Catches a view that needs a shell; its rule is the how-to page's, which the command has run."""
    table, report = told
    app = view(**LINK, rules=assertions.READY)
    shown = next(one.value for one in app.table if "Rule" in one.value.columns)
    mirrored = report["same_when_mirrored"]
    assert shown["Broken by"][0].startswith(f"{mirrored['broken']} of {FEW}: ")
    assert (table["same_when_mirrored"] > 0).sum() == mirrored["broken"]


def test_a_file_is_added_in_the_browser_and_run(view, workspace: Path) -> None:
    """Catches an upload that is lost or not chosen, and a broken file that stays. The example is such a file."""
    app = view(**LINK)
    app.file_uploader(key="rules_file").set_value(("broken.py", b"x = 1\n", "text/x-python")).run()
    app = settled(app.button(key="rules_add").click().run())
    assert any("has no assertion" in error.value for error in app.error)
    assert not list((workspace / "rules").glob("*"))
    example = app.code[0].value.encode()
    app.file_uploader(key="rules_file").set_value(("example.py", example, "text/x-python")).run()
    app = settled(app.button(key="rules_add").click().run())
    assert (workspace / "rules" / "example.py").read_bytes() == example
    assert app.selectbox(key="rules").value == "example.py"
    assert any("Broken: the share" in caption.value for caption in app.caption)


def test_an_account_that_may_not_run_code_adds_no_file(view, monkeypatch) -> None:
    """Catches an upload by an account that could read every response by it."""
    refuser = SimpleNamespace(explain_refusal=lambda *_: "Ask an administrator.")
    monkeypatch.setattr(assertions.service, "get_acting_researcher", lambda: refuser)
    app = view(**LINK)
    assert not app.get("file_uploader")
    assert any(one.value.endswith("Ask an administrator.") for one in app.info)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("def rule(picture, answer):\n    return 'yes'\n", r"bad\.py:rule gave 'yes' for adversarial/"),
        (
            "def rule(picture, answer):\n    return 1 / 0\n",
            r"bad\.py:rule failed on adversarial/.* \(ZeroDivisionError",
        ),
        ("def rule(picture, answer):\n    while True:\n        pass\n", r"bad\.py:rule did not end within 1 s"),
        ("x = 1\n", r"bad\.py has no assertion"),
    ],
)
def test_an_error_in_a_rule_is_its_sentence(view, rules: Path, code: str, sentence: str, monkeypatch) -> None:
    monkeypatch.setattr("dashboard.explore.debugging.jobs.LIMIT_S", 1.0)
    (rules.parent / "bad.py").write_text(code)
    app = view(**LINK, rules="bad.py")
    (error,) = app.error
    assert re.search(sentence, error.value.replace("\\", ""))
    assert not app.get("plotly_chart")


def test_a_changed_file_is_run_again(view, rules: Path) -> None:
    """Catches results of the file as it was before."""
    rules.write_text("def rule(picture, answer):\n    return True\n")
    assert view(**LINK, rules="mine.py").dataframe[1].value["broken"].tolist() == [0]
    rules.write_text("def rule(picture, answer):\n    return answer.label is None\n")
    assert view(**LINK, rules="mine.py").dataframe[1].value["broken"].tolist() == [FEW]


def test_a_stopped_run_goes_on_where_it_was(opened, workspace: Path, rules: Path) -> None:
    """Catches blocks that a stop loses, and a stop that waits for the whole set: the rule notes what it is asked."""
    noted = workspace / "noted"
    rules.write_text(
        f"def rule(picture, answer):\n    open({str(noted)!r}, 'a').write('.')\n    return answer.probability > 0.5\n"
    )
    classifier, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    request = make_assertions_task(classifier, rules, rules.read_bytes(), images)

    def stop(done: int, total: int, what: str) -> None:
        if done == BLOCK + 3:
            raise Cancellation

    with pytest.raises(Cancellation):
        request.compute(stop)
    assert len(noted.read_text()) == BLOCK + 3
    found = request.compute(silent)
    assert len(noted.read_text()) == FEW + 3  # of the block that was not whole
    network = [classifier.probabilities(classifier.preprocess(images.open(i))[None]).max() for i in range(FEW)]
    assert found.report["assertions"]["rule"]["broken"] == sum(float(p) <= 0.5 for p in network)
    assert not [*(workspace / "cache" / "assertions").iterdir()]


def test_long_work_waits_for_a_click(view, rules: Path, monkeypatch) -> None:
    """Catches a rule over thousands of pictures that the opening of a page begins."""
    monkeypatch.setattr("dashboard.explore.debugging.jobs.estimate_seconds", lambda *_: 100.0)
    rules.write_text(RULES + "\n# another file\n")
    app = view(**LINK, rules="mine.py")
    assert not app.get("plotly_chart")
    (button,) = [one for one in app.button if one.label.startswith("Compute")]
    assert settled(button.click().run()).get("plotly_chart")


def test_an_added_file_that_never_ends_is_refused_and_removed(opened, workspace, monkeypatch) -> None:
    """Catches a page that is held for ever by a loop at the top of a file."""
    monkeypatch.setattr("dashboard.explore.debugging.assertions.READING_S", 1.0)
    app = opened(view="Debugging", part="Assertions")
    app.file_uploader(key="rules_file").set_value(("endless.py", b"while True:\n    pass\n", "text/x-python")).run()
    app = settled(app.button(key="rules_add").click().run())
    assert any("endless.py was not read within 1 s." in error.value for error in app.error)
    assert not (workspace / "rules" / "endless.py").exists()
