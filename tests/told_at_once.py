"""A failed test is told when it fails: a run that is stopped, as by a limit of time, has no summary."""

from typing import Any

import pytest


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Only where a terminal is written to, which is not in the processes that run tests for another one."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        config.pluginmanager.register(ToldAtOnce(reporter))


class ToldAtOnce:
    """Writes a line for each failure, after the letter that stands for it."""

    def __init__(self, reporter: Any) -> None:
        """The terminal's reporter."""
        self._reporter = reporter

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What failed, in which phase, and the first line of why."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = str(crash.message if crash is not None else report.longrepr).strip().partition("\n")[0]
            self._reporter.ensure_newline()
            self._reporter.write_line(f"{report.nodeid} failed ({report.when}): {why}", red=True)
