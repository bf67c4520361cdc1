"""The page Monitor, run as Streamlit runs it over a real workspace."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.monitor import watching, withdrawal
from dashboard.monitor.progress import draw_funnel, draw_minutes, format_minutes
from dashboard.shared import service
from study.bundle import Bundle
from study.participation.payloads import TrialResponse
from study.store import audit
from tests.conftest import write_bundle
from tests.dashboard.conftest import read_headings
from tests.dashboard.views.conftest import press

GAVE = "gave a participant their data"


def script() -> None:
    from dashboard.monitor import page as monitor

    monitor.page()


@pytest.fixture
def opened(workspace: Path) -> AppTest:
    folder = write_bundle(workspace / "bundles" / "tiny-0123456789ab", name="tiny", trials=6, practice=0)
    service.get_service().researcher.open_study(folder, 2)
    service.get_service().participant.consent(service.get_service().participant.begin("tiny", participant="p"), True)
    return AppTest.from_function(script).run()


def test_an_empty_workspace_says_what_to_do(workspace: Path) -> None:
    app = AppTest.from_function(script).run()
    assert "Open one" in app.info[0].value


def test_numbers_places_and_people(opened: AppTest) -> None:
    assert not opened.exception
    numbers = {metric.label: metric.value for metric in opened.metric}
    assert (numbers["Reading"], numbers["Completed"]) == ("1", "0")
    assert opened.table[0].value["Quota"].tolist() == [2, 2, 2, 2]
    assert opened.dataframe[0].value["where"].tolist() == ["Reading"]


def test_times_are_numbers_which_a_table_aligns(opened: AppTest) -> None:
    """Catches numbers written as texts, which a table sets at the left, whatever their length."""
    times = opened.table[1].value
    assert times.columns[0] == "Part"
    assert {kind.kind for kind in times.dtypes.iloc[1:]} <= {"f", "i"}


def test_without_participants_the_next_step_is_said(workspace: Path) -> None:
    """Catches an empty table that suggests no next step, and a second term for completed participations."""
    folder = write_bundle(workspace / "bundles" / "n-0123456789ab", name="n", trials=6, practice=0)
    service.get_service().researcher.open_study(folder, 2)
    app = AppTest.from_function(script).run()
    assert any(c.value == "No participant has started yet." for c in app.caption)
    (link,) = [one.proto for one in app.get("page_link") if one.proto.label.startswith("Get the link")]
    assert (link.page, link.query_string) == ("studies", "study=n")
    assert list(app.table[0].value.columns) == ["Condition", "Quota", "Free", "In progress", "Completed"]
    assert "Completed" in [metric.label for metric in app.metric]


def test_the_places_of_a_study_within_participants_are_orders(workspace: Path) -> None:
    """Catches orders of all conditions that are called conditions."""
    config = {"allocation": {"within": True, "per_condition": 2}}
    options = {"trials": 12, "practice": 0, "conditions": ("none", "saliency"), "config": config}
    folder = write_bundle(workspace / "bundles" / "n-0123456789ab", name="n", **options)
    service.get_service().researcher.open_study(folder, 2)
    quotas = AppTest.from_function(script).run().table[0].value
    expected = ["No explanation, then saliency maps", "Saliency maps, then no explanation"]
    assert sorted(quotas["Order of conditions"]) == expected
    assert quotas["Quota"].tolist() == [1, 1]


def test_a_closed_study_offers_no_link(workspace: Path) -> None:
    """Catches the advice to send a link that tells participants that the study has ended."""
    folder = write_bundle(workspace / "bundles" / "n-0123456789ab", name="n", trials=6, practice=0)
    service.get_service().researcher.open_study(folder, 2)
    service.get_service().researcher.close_study("n")
    app = AppTest.from_function(script).run()
    said = [caption.value for caption in app.caption if caption.value.startswith("No participant has started yet.")]
    assert len(said) == 2  # the table's and the replay's
    assert not app.get("page_link")


def test_few_participants_are_counted_in_whole_numbers(opened: AppTest) -> None:
    """Catches an axis of 0, 0.2 and 0.4 participants."""
    seen = service.get_service().researcher.monitor("tiny")
    assert draw_funnel(seen).layout.xaxis.dtick == 1
    many = seen.funnel.assign(participants=4000)
    axis = draw_funnel(replace(seen, funnel=many)).layout.xaxis
    assert (axis.dtick, axis.tickformat) == (None, ",d")


def test_responses_of_five_minutes_are_a_bar_within_an_hour() -> None:
    """Catches a bar that fills the figure of a collection that has just begun."""
    times = [datetime(2026, 1, 1, 12, 0, tzinfo=UTC), datetime(2026, 1, 1, 12, 5, tzinfo=UTC)]
    first, last = watching.choose_time_range(pd.Series(times))
    assert last - first >= timedelta(hours=1)
    assert first < times[0] < times[1] < last


@pytest.mark.parametrize("minutes", [[0.4], [0.2, 0.3], [3.0, 12.5, 14.1, 95.0], [31.0, 31.2], [5.0, 4000.0]])
def test_completion_times_are_bars_of_a_figure_that_they_do_not_fill(opened: AppTest, minutes: list[float]) -> None:
    """Catches a bar as wide as the figure, a time that no bar counts, and hundreds of bars."""
    seen = replace(service.get_service().researcher.monitor("tiny"), minutes=pd.Series(minutes))
    figure = draw_minutes(seen)
    bars, (low, high) = figure.data[0], figure.layout.xaxis.range
    assert sum(bars.y) == len(minutes)
    assert len(bars.x) <= 20
    assert bars.width <= (high - low) / 10
    assert low == 0
    assert high >= max(minutes)
    for time in minutes:  # each is in the bar over its place
        assert any(abs(time - x) <= bars.width / 2 and y for x, y in zip(bars.x, bars.y, strict=True))


def test_labels_of_the_steps_fit_on_a_phone(opened: AppTest) -> None:
    """Catches labels that a narrow figure cuts: next to the names of the steps about 100 px are left."""
    labels = draw_funnel(service.get_service().researcher.monitor("tiny")).data[0].text
    assert labels[:2] == ("1", "1 (100%)")
    assert max(len(label) for label in labels) <= len("1,000 (100%)")


def test_pausing_closing_and_opening_again_keeps_the_places(opened: AppTest) -> None:
    opened.button(key="monitor_Pause").click().run()
    assert service.get_service().researcher.studies()[0].state == "paused"
    opened.button(key="monitor_Resume").click().run()
    assert service.get_service().researcher.studies()[0].state == "open"
    opened.button(key="monitor_Close").click().run()
    assert service.get_service().researcher.studies()[0].state == "closed"
    opened.button(key="monitor_Reopen").click().run()
    assert not opened.exception
    assert service.get_service().researcher.studies()[0].state == "open"
    assert opened.table[0].value["Quota"].tolist() == [2, 2, 2, 2]


def test_outcomes_are_shown_only_for_a_reason(opened: AppTest) -> None:
    assert len(opened.dataframe) == 1
    look = next(button for button in opened.button if button.label == "Unblind and log")
    look.click().run()
    assert "requires a reason" in opened.error[0].value
    opened.text_input(key="unblind_reason").set_value("the board asks")
    next(button for button in opened.button if button.label == "Unblind and log").click().run()
    named = [column for column in watching.OUTCOMES if column != "mean_level"]  # of ratings
    assert list(opened.dataframe[-1].value.columns) == named  # each has its heading


def test_planned_looks_are_shown_and_wait_until_they_are_due(workspace: Path) -> None:
    """The bound against the published one of a single look at half of the information (two-sided 0.05)."""
    stopping = {"looks": [3, 6], "contrast": {"more": "saliency"}}
    plan = {"analysis": {"participants": 6, "stopping": stopping}}
    folder = write_bundle(workspace / "bundles" / "t-0123456789ab", name="t", trials=6, practice=0, config=plan)
    service.get_service().researcher.open_study(folder, 6)
    app = AppTest.from_function(script).run()
    assert not app.exception
    table = next(d for d in app.dataframe if "bound" in d.value)
    assert table.value["bound"].round(4).tolist() == [2.9626, 1.9686]
    assert read_headings(table) == ["Analysis", "Participants per condition", "Bound on |z|", "Result"]
    assert app.button(key="monitor_look").disabled
    assert app.button(key="monitor_look").label == "No interim analysis is due"


def test_a_study_without_planned_looks_offers_none(opened: AppTest) -> None:
    assert not any(button.key == "monitor_look" for button in opened.button)


def test_a_session_is_replayed_with_what_was_on_its_screen(workspace: Path) -> None:
    """Catches a replay that is drawn while the study collects, and a trial drawn with the wrong option as chosen."""
    folder = write_bundle(workspace / "bundles" / "r-0123456789ab", name="r", trials=6, practice=2)
    researcher = service.get_service().researcher
    researcher.open_study(folder, 1)
    token = service.get_service().participant.begin("r", participant="p")
    service.get_service().participant.consent(token, True)
    service.get_service().participant.ready(token)
    service.get_service().participant.ready(token, "example")
    target_of = {
        t.assets.target: t.target for t in (*Bundle(folder).manifest.trials, *Bundle(folder).manifest.practice)
    }
    for index in range(4):  # the third response is the AI's prediction, the fourth is not
        shown = service.get_service().participant.state(token)["trial"]
        side = "left" if (shown["left"]["name"] == target_of[shown["target"]]) == (index == 2) else "right"
        sent = TrialResponse(trial_index=index, attempt_id=str(uuid.uuid4()), side=side, input="key", rt_ms=1500.0)  # type: ignore[arg-type]
        service.get_service().participant.record(token, sent)
    app = AppTest.from_function(script).run()

    def ask() -> AppTest:
        return next(button for button in app.button if button.label == "Replay and log").click().run()

    assert ask().error[0].value == "Choose a participant first."
    app.selectbox(key="replay_r_who").select_index(0)
    assert "cannot be replayed yet" in ask().error[0].value
    assert not [text for text in app.markdown if "condition:" in text.value]
    researcher.close_study("r")
    assert not ask().exception
    assert not app.error
    row = researcher.load_participants("r").iloc[0]
    assert f"**{row['participant']}**, condition: " in "".join(text.value for text in app.markdown)
    for number, badges in {3: [["AI", "Chosen"], []], 4: [["AI"], ["Chosen"]]}.items():
        app.select_slider[0].set_value(number).run()
        answered = researcher.responses("r").set_index("trial").loc[number - 2]
        said = next(text.value for text in app.markdown if text.value.startswith(f"Trial {number}"))
        assert f"{answered['choice']} (" in said
        assert "1.50 s, key" in said
        texts = [text.value for text in app.markdown]
        for option, wanted in zip((answered["category"], answered["alternative"]), badges, strict=True):
            after = texts[texts.index(f"**{option}**") + 1 :][: len(wanted) + 1]
            assert [word for word in ("AI", "Chosen") if any(f"[{word}]" in text for text in after)] == wanted


def test_a_participant_is_withdrawn_only_when_it_is_confirmed(opened: AppTest) -> None:
    """Catches a form that erases without the confirmation, and a text that is read as markup."""
    name = opened.dataframe[0].value["participant"].item()
    opened.selectbox(key="withdraw_who_tiny").select(name)
    opened.text_input(key="withdraw_why").set_value("<script>alert(1)</script> *today*")

    def press() -> AppTest:
        return next(button for button in opened.button if button.label == "Withdraw and erase").click().run()

    assert "Confirm that the participant asked" in press().error[0].value
    stage = service.get_service().researcher.load_participants("tiny")["stage"]
    assert stage.tolist() == ["instructions"]
    opened.checkbox(key="withdraw_sure").check()
    app = press()
    assert not app.exception
    assert f"{name} has withdrawn. Responses erased: 0." in app.success[0].value
    assert service.get_service().researcher.load_participants("tiny")["stage"].tolist() == ["withdrawn"]
    assert "has withdrawn before" in press().error[0].value


def test_a_message_is_sent_only_when_it_is_confirmed(opened: AppTest) -> None:
    """Catches a form that sends at once, and a text that is read as markup."""
    opened.text_area(key="message_text").set_value("<script>alert(1)</script> *soon*")

    def press() -> AppTest:
        return next(button for button in opened.button if button.label == "Send and log").click().run()

    assert "Confirm that the message" in press().error[0].value
    assert service.get_service().researcher.list_messages("tiny").empty
    opened.checkbox(key="message_sure").check()
    app = press()
    assert not app.exception
    assert app.success[0].value == "Sent to 1 participant."
    (sent,) = [frame.value for frame in app.dataframe if "Message" in frame.value]
    assert sent[["Recipient", "Message", "Sent", "Shown"]].to_numpy().tolist() == [
        ["all", "<script>alert(1)</script> *soon*", 1, 0]
    ]


def test_participants_are_chosen_from_a_list(opened: AppTest) -> None:
    """Catches a name of sixteen characters that must be typed before a participant is released or excluded."""
    name = opened.dataframe[0].value["participant"].item()
    for key in ("remove_who_tiny", "withdraw_who_tiny", "message_who_tiny", "replay_tiny_who"):
        assert (opened.selectbox(key=key).options, opened.selectbox(key=key).value) == ([name], None), key
    opened.text_input(key="remove_why").set_value("Asked for it")
    assert press(opened, "Exclude this participant").error[0].value == "Choose a participant first."
    opened.selectbox(key="remove_who_tiny").select(name)
    assert press(opened, "Exclude this participant").success[0].value == f"{name} is excluded."
    assert service.get_service().researcher.exclusions("tiny")["participant"].tolist() == [name]
    opened.selectbox(key="message_who_tiny").select(name)
    opened.text_area(key="message_text").set_value("Soon.")
    opened.checkbox(key="message_sure").check()
    assert press(opened, "Send and log").success[0].value == "Sent to 1 participant."
    assert service.get_service().researcher.list_messages("tiny")["recipient"].tolist() == [name]


def test_a_participant_is_withdrawn_by_what_only_they_know(opened: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a list that a private code cannot be entered into; `AppTest` cannot enter it."""
    assert opened.selectbox(key="withdraw_who_tiny").proto.accept_new_options
    token = service.get_service().participant.begin("tiny", participant="q")
    code = service.get_service().participant.consent(token, True)["withdrawal_code"]
    monkeypatch.setattr(withdrawal, "choose_participant", lambda *_, **__: code)
    opened.text_input(key="withdraw_why").set_value("E-mail of 3 May")
    opened.checkbox(key="withdraw_sure").check()
    assert "has withdrawn. Responses erased: 0." in press(opened, "Withdraw and erase").success[0].value


def test_a_participant_is_given_what_is_held_about_them(opened: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches data of another participant, a download without a logged request, and a file that is not JSON."""
    store = service.get_service().workspace.store
    service.get_service().participant.begin("tiny", participant="q")
    name = opened.dataframe[0].value["participant"].item()
    downloads: list[tuple[str, str, str, str]] = []
    monkeypatch.setattr("streamlit.download_button", lambda *given: downloads.append(given))
    assert press(opened, "Collect and log").error[0].value == "Choose a participant first."
    opened.selectbox(key="data_who_tiny").select(name)
    assert "Say how and when" in press(opened, "Collect and log").error[0].value
    assert (downloads, store.read(lambda db: audit.acts(db, GAVE))) == ([], [])
    opened.text_input(key="data_why").set_value("<b>E-mail</b> of 3 May")
    assert not press(opened, "Collect and log").error
    [(label, content, file, kind)] = downloads
    assert (label, file, kind) == ("Download", f"{name}.json", "application/json")
    held = json.loads(content)
    assert held["participant"] == name
    assert [row["stage"] for row in held["tables"]["session"]] == ["instructions"]
    [logged] = store.read(lambda db: audit.acts(db, GAVE))
    assert "<b>E-mail</b> of 3 May" in logged["detail_json"]


def test_what_was_only_simulated_or_previewed_is_not_monitored(opened: AppTest, workspace: Path) -> None:
    """Catches a collection that never was one, and a newer build that takes the place of the open version."""
    researcher = service.get_service().researcher
    for name in ("other-00", "tiny-ffff"):
        write_bundle(workspace / "bundles" / name, name=name.partition("-")[0], seed=8, trials=6, practice=0)
        researcher.begin_preview(name.partition("-")[0], None)
    researcher.close_study("tiny")
    app = opened.run()
    assert app.selectbox(key="study").options == ["tiny"]
    app.button(key="monitor_Reopen").click().run()
    assert [status.state for status in researcher.studies() if status.name == "tiny"] == ["open", "closed"]


def test_a_link_to_an_unknown_study_says_so(opened: AppTest) -> None:
    """Catches the monitor of another study without a word."""
    assert not opened.warning
    app = AppTest.from_function(script)
    app.query_params["study"] = "nowhere"
    app.run()
    assert "The link names “nowhere”, which does not exist here. Another one is shown instead." in [
        box.value for box in app.warning
    ]
    assert app.selectbox(key="study").value == "tiny"


def test_no_number_is_more_precise_than_it_is_known(opened: AppTest) -> None:
    """Catches "0.0 minutes", "0.1 min ago", "8.57%" of the trials, code names, and percentiles like shares."""
    assert [format_minutes(time).split() for time in (0.02, 0.99)] == [["under", "1"]] * 2
    assert [format_minutes(time) for time in (1, 9.94, 14.26)] == ["1.0", "9.9", "14"]
    assert list(opened.table[1].value.columns)[2:] == ["10th percentile", "Median", "90th percentile"]
    columns = json.loads(opened.dataframe[0].proto.columns)
    assert columns["minutes"]["type_config"]["format"] == "distance"
    assert columns["trial"]["type_config"]["format"] == "%d of 6"
    row = opened.dataframe[0].value.iloc[0]
    assert (row["stage"], row["trial"]) == ("Instructions", 0)
