"""What is stored of a participation that is interrupted: ``python -m benchmarks.interruptions``.

A real Chromium goes through six trials of Foretell and of jsPsych, which ``npm pack`` brings, and is interrupted.
jsPsych sends its data to a server of this script in both ways that its tutorials show: all at the end (``on_finish``),
or after each trial (``on_data_update``). For each interruption: how often the participant responds, how many of the six
trials have a stored response, how many have more than one, and how many responses came sooner after the trial appeared
than a participant can see it.
"""

from __future__ import annotations

import http.server
import json
import subprocess
import tarfile
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from benchmarks.machine import arguments, hand_over
from study.service import Service
from tests.browser.participation import at_main, newest, query, wait_for_trial
from tests.conftest import CHROMIUM, write_bundle
from tests.server import Server, serving

TRIALS, CUT = 6, 3
"""Trials of a participation, and those before the interruption."""
AWAY_MS, AGAIN_MS, LATE_MS, UNSEEN_MS = 1500, 40, 1500, 200
"""How long a connection is lost, the time between two clicks of a double click, what late messages are
given, and the time in which nobody sees a trial and responds to it."""
JSPSYCH = ("jspsych@8.3.0", "@jspsych/plugin-html-button-response@2.1.0")
PAGE = """<!doctype html><meta charset="utf-8"><title>jsPsych</title>
<script src="/jspsych.js"></script><script src="/plugin-html-button-response.js"></script><body><script>
const send = (rows) => fetch("/data", { method: "POST", body: JSON.stringify(rows) }).catch(() => {});
const jsPsych = initJsPsych({ %s });
jsPsych.run(Array.from({ length: %d }, (_, k) => ({
  type: jsPsychHtmlButtonResponse, stimulus: `<p id="trial">${k + 1}</p>`, choices: ["left", "right"],
  data: { number: k + 1, correct_response: ["left", "right"][k %% 2] },
}))).then(() => document.body.insertAdjacentHTML("beforeend", "<p id=over>over</p>"));
</script>"""
SAVING = {
    "jsPsych, saved at the end": "on_finish: () => send(jsPsych.data.get().values())",
    "jsPsych, saved after each trial": "on_data_update: (data) => send([data])",
}


class Experiment(Protocol):
    """Six trials in a browser."""

    def open(self, context: BrowserContext) -> Page:
        """Begin, and wait for the first trial."""

    def wait(self, page: Page) -> int:
        """Wait for a trial that can be responded to; its number, or 0 after the last."""

    def find_button(self, page: Page) -> Any:
        """Return a button of the trial."""

    def list_stored(self) -> list[tuple[int, float]]:
        """List each stored response: the number of its trial, and its time in ms."""


class Foretell:
    """A study of Foretell, on its real server."""

    def __init__(self, server: Server) -> None:
        self.server, self.session, self.address = server, "", ""
        self.last: dict[Page, int] = {}

    def open(self, context: BrowserContext) -> Page:
        page = context.new_page()
        if context.pages[0] is page:
            self.address = at_main(self.server, "demo", 0)
        page.goto(self.address)
        if context.pages[0] is not page:  # it asks first, in another tab
            page.click("#again")
        page.click("#begin")
        self.session = newest(self.server)
        return page

    def wait(self, page: Page) -> int:
        trial = f"#trial[data-phase=shown]:not([data-number='{self.last.get(page, 0)}'])"
        page.locator(f"{trial}, #end, #begin").locator("visible=true").first.wait_for()
        if page.locator("#begin").is_visible():
            page.click("#begin")
            return self.wait(page)
        if page.locator("#end").is_visible():
            return 0
        number = int(page.locator(trial).get_attribute("data-number") or 0)
        wait_for_trial(page, number)
        self.last[page] = number
        return number

    def find_button(self, page: Page) -> Any:
        return page.locator("#left")

    def list_stored(self) -> list[tuple[int, float]]:
        return query(self.server, "SELECT trial_index + 1, rt_ms FROM response WHERE session_id = ?", self.session)


class JsPsych:
    """The same number of trials of jsPsych, whose data a small server appends to a list."""

    def __init__(self, folder: Path, saving: str) -> None:
        self.rows: list[tuple[int, float]] = []
        self.page = PAGE % (SAVING[saving], TRIALS)
        handler = partial(Handler, self, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def open(self, context: BrowserContext) -> Page:
        if not context.pages:
            self.rows.clear()
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{self.server.server_port}/")
        return page

    def wait(self, page: Page) -> int:
        page.wait_for_function("document.querySelector('#over, #trial') !== null")
        page.wait_for_timeout(260)  # as long as Foretell waits
        return 0 if page.locator("#over").count() else int(page.locator("#trial").inner_text())

    def find_button(self, page: Page) -> Any:
        return page.locator(".jspsych-btn").first

    def list_stored(self) -> list[tuple[int, float]]:
        return list(self.rows)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves jsPsych and its page, and keeps what is sent."""

    def __init__(self, experiment: JsPsych, *given: Any, **options: Any) -> None:
        self.experiment = experiment
        super().__init__(*given, **options)

    def do_GET(self) -> None:
        """Serve the page, or a file of jsPsych."""
        if self.path != "/":
            super().do_GET()
            return
        content = self.experiment.page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        """Keep the number of the trial and the time of each row."""
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.experiment.rows += [
            (int(row["number"]), float(row["rt"])) for row in rows if row.get("response") is not None
        ]
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def respond(experiment: Experiment, page: Page, most: int = 100) -> int:
    """Respond to trials to the end, or to so many; return how often."""
    presses = 0
    while presses < most and experiment.wait(page):
        experiment.find_button(page).click()
        presses += 1
    return presses


def reload(experiment: Experiment, context: BrowserContext) -> int:
    """Reload the page in the middle, and go on to the end."""
    page = experiment.open(context)
    before = respond(experiment, page, CUT)
    page.reload()
    return before + respond(experiment, page)


def close(experiment: Experiment, context: BrowserContext) -> int:
    """Close the browser in the middle, for good."""
    page = experiment.open(context)
    presses = respond(experiment, page, CUT)
    page.wait_for_timeout(LATE_MS)
    page.close()
    return presses


def lose_connection(experiment: Experiment, context: BrowserContext) -> int:
    """Respond to a trial while the connection is lost for a moment."""
    page = experiment.open(context)
    before = respond(experiment, page, CUT)
    experiment.wait(page)
    context.set_offline(True)
    experiment.find_button(page).click()
    page.wait_for_timeout(AWAY_MS)
    context.set_offline(False)
    return before + 1 + respond(experiment, page)


def double_click(experiment: Experiment, context: BrowserContext) -> int:
    """Click twice in each trial."""
    page, presses = experiment.open(context), 0
    while experiment.wait(page):
        box = experiment.find_button(page).bounding_box()
        for _ in range(2):
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            page.wait_for_timeout(AGAIN_MS)
        presses += 2
    return presses


def open_two_tabs(experiment: Experiment, context: BrowserContext) -> int:
    """Open the link a second time in the middle, and go on to the end in both tabs."""
    first = experiment.open(context)
    before = respond(experiment, first, CUT)
    second = experiment.open(context)
    after = respond(experiment, second)
    if not isinstance(experiment, Foretell):  # the first tab of Foretell says that the study is open elsewhere
        after += respond(experiment, first)
    return before + after


INTERRUPTIONS: dict[str, Callable[[Experiment, BrowserContext], int]] = {
    "reloaded in the middle": reload,
    "closed in the middle": close,
    "connection lost during a response": lose_connection,
    "double clicks": double_click,
    "a second tab": open_two_tabs,
}


def measure() -> dict[str, Any]:
    """Interrupt each experiment in each way."""
    rows = []
    with open_experiments() as experiments, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, make in experiments.items():
            for situation, interrupt in INTERRUPTIONS.items():
                rows.append({"software": name, "situation": situation, **count(browser, make(), interrupt)})
        browser.close()
    return {"trials": TRIALS, "interrupted_after": CUT, "versions": list(JSPSYCH), "rows": rows}


def count(
    browser: Browser, experiment: Experiment, interrupt: Callable[[Experiment, BrowserContext], int]
) -> dict[str, Any]:
    """Count what is stored of one participation."""
    with browser.new_context(viewport={"width": 1000, "height": 720}) as context:
        presses = interrupt(experiment, context)
        if context.pages:
            context.pages[0].wait_for_timeout(LATE_MS)
        rows = experiment.list_stored()
    stored = Counter(number for number, _ in rows)
    return {
        "presses": presses,
        "stored": len(stored),
        "stored_twice": sum(number > 1 for number in stored.values()),
        "unseen": sum(time < UNSEEN_MS for _, time in rows),
    }


@contextmanager
def open_experiments() -> Iterator[dict[str, Callable[[], Experiment]]]:
    """Open the server of Foretell, and unpack jsPsych."""
    with tempfile.TemporaryDirectory() as scratch:
        home, packages = Path(scratch) / "home", Path(scratch) / "jspsych"
        home.mkdir()
        packages.mkdir()
        unpack(packages)
        with Service(home) as service:
            bundle = write_bundle(home / "bundle", name="demo", trials=TRIALS, practice=0)
            service.researcher.open_study(bundle, per_condition=20)
        with serving(home) as server:
            made: dict[str, Callable[[], Experiment]] = {"Foretell": lambda: Foretell(server)}
            yield made | {name: partial(JsPsych, packages, name) for name in SAVING}


def unpack(folder: Path) -> None:
    """Fetch jsPsych with npm, and keep the file of each package for browsers."""
    for package in JSPSYCH:
        command = ["npm", "pack", "--silent", package]
        said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()[-1]
        with tarfile.open(folder / said) as archive:
            content = archive.extractfile("package/dist/index.browser.min.js")
            assert content is not None
            name = package.rpartition("@")[0].removeprefix("@jspsych/")
            (folder / f"{name}.js").write_bytes(content.read())


if __name__ == "__main__":
    hand_over("interruptions", arguments("interruptions").parse_args(), measure)
