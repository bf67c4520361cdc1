"""Table, figure and page of ``benchmarks/results/interruptions.json``."""

from __future__ import annotations

from typing import Any

from generators.benchmark_tables import Result
from generators.markdown import format_table
from generators.plots import Series, draw_dots
from generators.results import describe_machine, read_result

PAGE = """\
# When a participant is interrupted

<!-- Written by `python docs/generate.py` from benchmarks/results. Do not edit by hand. -->

Pages are reloaded, connections fail, and links are opened twice. What is then stored decides whether a participation
can be analysed.

## Measured: Foretell and jsPsych

A real Chromium goes through {trials} trials and is interrupted after {cut}. jsPsych saves as its tutorials show: all
at the end, or each trial when it is over. In the table, how many of the participant's trials have a stored response,
and what is wrong with the responses:

{measured}

{machine}

jsPsych stores what it is told to, and a careful lab can write what is missing: it is a library for the page, without a
server. That the page is rebuilt after a reload is planned for its version 9
([pull request 3713](https://github.com/jspsych/jsPsych/pull/3713)).

## Documented: Qualtrics and Gorilla

Both are services that cannot be taken apart here, so this is what their guides say. A dash: we found nothing about it.

{documented}

## Each promise has a test

All of them use a real server and database, and those of pages a real Chromium.

{tests}
"""
BROWSER, KILL, DISK = "tests/faults/test_browser.py", "tests/faults/test_kill.py", "tests/faults/test_database.py"
OFFLINE, RUNNER = "tests/browser/runner/test_offline.py", "tests/browser/runner/test_runner.py"
TESTS = (
    ("Offline and online again at every trial", BROWSER, "test_offline_and_online_at_every_trial"),
    ("Reload, and back, at every trial", BROWSER, "test_reload_and_back_at_every_trial"),
    ("Reload before a response was sent", BROWSER, "test_reload_right_after_every_answer"),
    ("Double clicks and keys pressed at random", BROWSER, "test_double_clicks_and_mashed_keys_answer_once"),
    ("Two tabs, and a copied tab", BROWSER, "test_two_tabs"),
    ("A clock that jumps", BROWSER, "test_a_clock_that_jumps_changes_no_time"),
    ("Replies that never come, or come twice", BROWSER, "test_replies_that_never_come_and_come_twice"),
    ("The server is killed at every trial", BROWSER, "test_the_server_is_killed_at_every_trial"),
    ("`kill -9` under load", KILL, "test_kill_9_loses_no_acknowledged_answer_and_doubles_none"),
    ("A full disk", DISK, "test_a_really_full_disk_refuses_in_words_and_goes_on"),
    ("An image that does not load", OFFLINE, "test_a_image_that_does_not_load_stops_the_study_until_it_does"),
    ("The AI's prediction is not in the page", RUNNER, "test_nothing_tells_the_answer_before_it_is_given"),
)
"""What may go wrong, and the test's file and name."""
QUALTRICS = "https://www.qualtrics.com/support/survey-platform/survey-module/survey-options/survey-experience/"
GORILLA = "https://support.gorilla.sc/support/troubleshooting-and-technical/technical-checklist"
DOCUMENTED = (
    (
        "Return after the page was closed",
        "at the trial that was open; on another device with the private code",
        f"within a week, in the same browser, by a cookie; with individual links anywhere ([options]({QUALTRICS}))",
        "–",
    ),
    (
        "When a response is saved",
        "when it is given",
        "when the next page is opened ([options](http://www.qualtrics.com/wiki/index.php/Survey_Options_Page))",
        "–",
    ),
    ("Images are loaded before the trials", "yes", "–", f"yes ([checklist]({GORILLA}))"),
)
"""A line of the table of documents: what happens, in Foretell, Qualtrics and Gorilla."""


def tabulate(result: Result) -> list[str]:
    """Tabulate what each software has stored after each interruption."""
    names = list(dict.fromkeys(row["software"] for row in result["rows"]))
    by_place = {(row["situation"], row["software"]): row for row in result["rows"]}
    situations = dict.fromkeys(row["situation"] for row in result["rows"])
    rows = [(one, *(_describe(by_place[one, name], result) for name in names)) for one in situations]
    return format_table(["interruption", *names], rows)


def _describe(row: dict[str, Any], result: Result) -> str:
    given = result["interrupted_after"] if row["situation"] == "closed in the middle" else result["trials"]
    again = row["presses"] - given if row["situation"] not in ("double clicks", "a second tab") else 0
    faults = (
        ("{} responded to again", max(0, again)),
        ("{} with two responses", row["stored_twice"]),
        ("{} before the trial can be seen", row["unseen"]),
    )
    said = [text.format(number) for text, number in faults if number]
    return "; ".join([f"{row['stored']} of {given}", *said])


def plot(result: Result) -> str:
    """Plot the trials with exactly one response that a participant can have meant."""
    series = {}
    for name in dict.fromkeys(row["software"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["software"] == name]
        sound = {row["situation"]: float(row["stored"] - row["stored_twice"] - row["unseen"]) for row in rows}
        series[name] = Series(sound)
    return draw_dots(series, "trials with one response, given after the trial was seen")


def render_page() -> str:
    """Render the page."""
    record = read_result("interruptions")
    assert record is not None
    result = record["result"]
    tests = [(what, f"`{file}::{name}`") for what, file, name in TESTS]
    return PAGE.format(
        trials=result["trials"],
        cut=result["interrupted_after"],
        measured="\n".join(tabulate(result)),
        machine=describe_machine(record),
        documented="\n".join(format_table(["", "Foretell", "Qualtrics", "Gorilla"], DOCUMENTED)),
        tests="\n".join(format_table(["what goes wrong", "test"], tests)),
    )
