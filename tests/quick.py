"""`make quick`: the pure tests of what changed since main, within a minute.

A pure test needs no process, no socket and no other machine's program. First come changed test modules, then the tests
in the folder that mirrors a changed module, then other tests that import a changed module. What doesn't fit into the
time is counted, so that nobody takes a part for the whole.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.imports import imported_files
from tests.sources import ROOT

PURE = (
    "tests/client",
    "tests/cli",
    "tests/coordinator",
    "tests/protocol",
    "tests/release",
    "tests/scenarios",
    "tests/storage",
)
ALWAYS = ("tests/test_tidy.py",)
TIME_S = 50.0
"""Time for the tests; importing and collecting them takes the rest of the minute."""


class Budget:
    """The pytest plugin that stops the session when the time is over."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._left = 0
        self.has_passed = False
        """True if the session was stopped before a test had failed."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._left = len(session.items)

    def pytest_runtest_logfinish(self) -> None:
        self._left -= 1

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        if time.monotonic() > self._deadline_s and self._left > 1:
            item.session.shouldstop = f"the time is over, {self._left - 1} tests were not run"
            self.has_passed = not item.session.testsfailed


def git(*words: str) -> list[str]:
    """Returns the lines that git prints; none if it fails."""
    ended = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return ended.stdout.splitlines() if not ended.returncode else []


def changed(base: str) -> list[str]:
    """Returns the Python files that differ from the base's last common commit, new files included."""
    (start, *_) = [*git("merge-base", base, "HEAD"), "HEAD"]
    named = [*git("diff", "--name-only", start), *git("ls-files", "--others", "--exclude-standard")]
    return sorted({name for name in named if name.endswith(".py") and (ROOT / name).exists()})


def is_pure(path: str) -> bool:
    return any(path.startswith(f"{room}/") for room in PURE) and Path(path).name.startswith("test_")


def pure_tests() -> list[str]:
    files = (file for room in PURE for file in (ROOT / room).rglob("test_*.py"))
    return sorted(file.relative_to(ROOT).as_posix() for file in files)


def mirrors(test: str, module: str) -> bool:
    """True if a test is at the path that mirrors a module's, or in the folder that mirrors the module's folder."""
    return Path(test).parent in (Path("tests", module).parent, Path("tests", module).with_suffix(""))


def chosen(names: Iterable[str], tests: Iterable[str]) -> list[str]:
    """Returns the tests to run for changed files, the nearest first."""
    modules = {name for name in names if not name.startswith("tests/")}
    itself = [name for name in names if is_pure(name)]
    near = [test for test in tests if any(mirrors(test, module) for module in modules)]
    users = [test for test in tests if imported_files(test) & {*modules, *names}]
    return list(dict.fromkeys([*itself, *near, *users]))


def main(arguments: list[str]) -> int:
    """Returns pytest's exit code; 0 if the time was over and no test had failed until then."""
    deadline_s = time.monotonic() + TIME_S
    names = changed(arguments[0] if arguments else "main")
    tests = chosen(names, pure_tests())
    print(f"{len(names)} changed modules, {len(tests)} modules of pure tests")
    budget = Budget(deadline_s)
    status = pytest.main(["-q", "-p", "no:xdist", *tests, *ALWAYS], plugins=[budget])
    return 0 if budget.has_passed else int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
