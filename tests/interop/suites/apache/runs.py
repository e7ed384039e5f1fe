"""Runs classes of a suite, each in its own JVM, and stores their results."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.interop.suites.apache import outcomes
from tests.interop.suites.apache.outcomes import FAILED, JUnitTest
from tests.interop.suites.apache.suites import HERE, JAVA, Suite, class_path

CLASS_TIMEOUT_S = 1_800
"""Time after which a JVM and its brokers are killed."""
TEST_TIMEOUT = "150s"
"""Time after which JUnit interrupts a test that names no timeout."""
STOP_TIMEOUT_S = 10
ERROR_LINES = ('"level": "error"', '"level": "critical"', "Traceback")
LINE_LENGTH = 500
_jvms: Final[set[subprocess.Popen[bytes]]] = set()
"""The JVMs that run."""


def kill_all() -> None:
    """Kills all JVMs and their brokers: threads that wait for them don't see this process's signals."""
    for jvm in tuple(_jvms):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(jvm.pid, signal.SIGKILL)


class Cluster(NamedTuple):
    """The broker of the clusters (Odradek or Apache Kafka), and how it is started."""

    is_odradek: bool
    program: str
    """The command `odradek`."""
    packages: Path | None
    """The folder that nursery.py imports Odradek's packages from. Without one, each node is an `odradek run`."""


class ClassRun(NamedTuple):
    """The results of the tests of a class."""

    seconds: float
    tests: dict[str, JUnitTest]
    again: dict[str, JUnitTest]
    """Tests that ended otherwise than expected, run once more, each in a JVM of its own."""
    log_errors: list[str]

    @property
    def final(self) -> dict[str, JUnitTest]:
        return self.tests | self.again


class Runner:
    """Runs tests against clusters of one kind."""

    def __init__(self, suite: Suite, cluster: Cluster, folder: Path, heap: str = "700m") -> None:
        self._suite = suite
        self._cluster = cluster
        self._folder = folder
        """The folder of the logs."""
        self._heap = heap

    def run(self, name: str, entries: Sequence[outcomes.Expected], timeout_s: float = CLASS_TIMEOUT_S) -> ClassRun:
        """Runs a class. Its tests that end otherwise than expected are run once more, alone."""
        began = time.monotonic()
        folder = self._folder / name.rpartition(".")[2]
        tests = self._junit(folder, ["--select-class", name], timeout_s)
        errors = log_errors(folder)
        again: dict[str, JUnitTest] = {}
        for number, (test, found) in enumerate(tests.items()):
            if found.outcome == FAILED and not outcomes.is_expected(test, found, entries) and found.unique_id:
                alone = folder.with_name(f"{folder.name}-again-{number}")
                again |= {test: self._junit(alone, ["--uid", found.unique_id], timeout_s).get(test, found)}
                errors += log_errors(alone)
        return ClassRun(round(time.monotonic() - began, 1), tests, again, errors)

    def _junit(self, folder: Path, selected: list[str], timeout_s: float) -> dict[str, JUnitTest]:
        """Runs JUnit's console. Its process group has the brokers, too."""
        folder.mkdir(parents=True)
        lines = folder / "outcomes.jsonl"
        lines.touch()
        with (folder / "console.txt").open("wb") as console:
            jvm = subprocess.Popen(
                self._command(folder, lines, selected), stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                start_new_session=True,
            )  # fmt: skip
            _jvms.add(jvm)
            try:
                jvm.wait(timeout_s)
            except subprocess.TimeoutExpired:
                console.write(f"killed after {timeout_s:g} s\n".encode())
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(jvm.pid, signal.SIGKILL)
                jvm.wait(STOP_TIMEOUT_S)
                _jvms.discard(jvm)
        tests = outcomes.read(lines.read_text().splitlines())
        return tests or {folder.name: JUnitTest(FAILED, f"no test ran: {(folder / 'console.txt')}")}

    def _command(self, folder: Path, lines: Path, selected: list[str]) -> list[str]:
        nursery = self._cluster.packages and f"{sys.executable} -P {HERE / 'nursery.py'} {self._cluster.packages}"
        properties = {
            "java.net.preferIPv4Stack": "true",
            "log4j2.configurationFile": str(JAVA / "log4j2.properties"),
            "odradek.program": self._cluster.program,
            "odradek.nursery": nursery or "",
            "odradek.logs": str(folder),
            "odradek.outcomes": str(lines),
        }
        limits = [
            word
            for kind in ("test", "testtemplate")
            for word in ("--config", f"junit.jupiter.execution.timeout.{kind}.method.default={TEST_TIMEOUT}")
        ]
        return [
            "java", f"-Xmx{self._heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            *(f"-D{key}={value}" for key, value in properties.items()),
            "-cp", class_path(of_processes=self._cluster.is_odradek),
            "org.junit.platform.console.ConsoleLauncher", "execute", "--details=none", "--disable-banner",
            *limits, *selected,
        ]  # fmt: skip


def log_errors(folder: Path) -> list[str]:
    """Returns the lines of the nodes' logs that have the level error or begin a traceback, and that no test expects."""
    return [error for cluster in sorted(folder.iterdir()) if cluster.is_dir() for error in log_errors_of(cluster)]


def log_errors_of(cluster: Path) -> list[str]:
    """Returns these lines of one cluster, whose nodes have their properties and logs in a folder."""
    settings = [path.read_text().splitlines() for path in cluster.glob("node-*.properties")]
    roles = [line for lines in settings for line in lines if line.startswith("process.roles=")]
    expected = outcomes.expected_log_lines(brokers=sum("broker" in line for line in roles))
    return [
        f"{cluster.name}/{log.name}: {line[:LINE_LENGTH]}"
        for log in sorted(cluster.glob("node-*.log"))
        for line in log.read_text(errors="replace").splitlines()
        if any(mark in line for mark in ERROR_LINES) and not any(text in line for text in expected)
    ]
