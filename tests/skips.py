"""Skipped tests are shown at the end of a run, and fail it where ``SLICEWISE_NO_SKIPS`` is set, as CI does.

A test that is skipped looks like one that passes: whoever reads the last line does not see that a store, a server or a
picture was never tried. What a run may skip is in ``MAY_SKIP`` with its reason; there is nothing at present.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

#: The beginning of a test's name (its file, or the file and the test), and why nothing real is left untested.
MAY_SKIP: dict[str, str] = {}


def skipped_tests(reporter: Any) -> dict[str, str]:
    """The tests and the files that were skipped, with the reason each gave."""
    return {report.nodeid: _reason(report) for report in reporter.stats.get("skipped", [])}


def _reason(report: Any) -> str:
    """Pytest keeps where a test was skipped and why; the text of another plugin is taken as it is."""
    where_and_why = report.longrepr
    return str(where_and_why[2] if isinstance(where_and_why, tuple) else where_and_why).removeprefix("Skipped: ")


def not_allowed(skipped: dict[str, str]) -> list[str]:
    """The names among them for which ``MAY_SKIP`` has no reason."""
    return [name for name in skipped if not name.startswith(tuple(MAY_SKIP))]


def _reporter(config: pytest.Config) -> Any:
    """Of the process that reports: a worker of pytest-xdist has none to ask."""
    return None if hasattr(config, "workerinput") else config.pluginmanager.get_plugin("terminalreporter")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run with a test that must not be skipped has failed."""
    reporter = _reporter(session.config)
    strict = bool(os.environ.get("SLICEWISE_NO_SKIPS"))
    if strict and reporter is not None and not_allowed(skipped_tests(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was skipped, whatever ``-q`` and ``-r`` say."""
    skipped = skipped_tests(terminalreporter)
    if not skipped:
        return
    terminalreporter.section("skipped")
    forbidden = not_allowed(skipped) if os.environ.get("SLICEWISE_NO_SKIPS") else []
    for name, reason in skipped.items():
        terminalreporter.line(f"{'MUST NOT BE SKIPPED ' if name in forbidden else ''}{name}: {reason}")
