"""A broker and consoles for the tests of their pages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from odradek.testing import Broker
from tests.console.browser import Browser, ConsoleProcess, running_console

SCREENSHOTS = "--console-screenshots"

IN_CHROMIUM = ["test_in_chromium.py", "test_share_story.py", "test_with_apache_kafka.py"]
collect_ignore = [] if find_spec("playwright") else IN_CHROMIUM
"""Playwright is not among the packages of `make setup`: `make test-console` installs it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(SCREENSHOTS, metavar="DIR", help="folder of the screenshots of docs/console.md")


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@pytest.fixture(scope="session")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit log of the console that allows changes."""
    return tmp_path_factory.mktemp("console") / "audit.jsonl"


@pytest.fixture(scope="session")
def console(broker: Broker, audit: Path) -> Iterator[ConsoleProcess]:
    """A console that allows changes."""
    with running_console(broker.bootstrap, "--allow-changes", "--audit-log", str(audit)) as process:
        yield process


@pytest.fixture(scope="session")
def reading_console(broker: Broker) -> Iterator[ConsoleProcess]:
    """A console that is read-only."""
    with running_console(broker.bootstrap) as process:
        yield process


@pytest.fixture
def browser(console: ConsoleProcess) -> Browser:
    return console.browser()
