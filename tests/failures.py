"""A plugin: each failure is printed when it happens, so that a run that is broken off has said what failed.

A test with a browser says what its pages showed: most of what fails on a busy machine alone is seen in no traceback.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error, Page

SOON_MS = 5000
MOST_CHARACTERS = 1500


class FailuresAtOnce:
    """Print the report of each test that fails."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print what failed, why, and what it had printed."""
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"{report.when} of {report.nodeid} failed:")
            self._terminal.write_line(report.longreprtext)
            for heading, text in report.sections:
                self._terminal.write_line(f"-- {heading}\n{text}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Begin to print, where there is a terminal: processes of pytest-xdist report to the one that has it."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(terminal), "failures at once")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add the address and the text of each open page to the report of what failed."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("chromium")
    if call.when == "call" and report.failed and isinstance(browser, Browser):
        pages = [page for context in browser.contexts for page in context.pages]
        report.sections += [(f"page {page.url}", describe_page(page)) for page in pages]
    return report


def describe_page(page: Page) -> str:
    """Return what a page shows, or why it does not say so."""
    try:
        return page.locator("body").inner_text(timeout=SOON_MS)[:MOST_CHARACTERS]
    except Error as error:
        return f"It says nothing: {error.message.splitlines()[0]}"
