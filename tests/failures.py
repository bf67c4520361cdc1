"""A plugin: each failure is printed when it happens, so that a run that is broken off has said what failed."""

from __future__ import annotations

import pytest


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
