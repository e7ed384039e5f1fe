"""Suites in packages of npm, in the versions of node/package-lock.json: mocha's tests, and librdkafka's in C."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.jars import APACHE_KAFKA, locked
from tests.interop import jvm, node
from tests.interop.processes import run
from tests.interop.suites.nodes import Nodes
from tests.interop.suites.outcomes import REASON_LENGTH, Outcome, Result
from tests.interop.suites.processes import Process

HERE = Path(__file__).parent / "node"
BUILD_TIMEOUT_S = 3_600
SLASH = "\N{DIVISION SLASH}"
NODE_HEADERS = "/usr"
"""The folder of Node's headers, of Debian's package libnode-dev. node-gyp would download others."""


@cache
def packages() -> Path:
    """Returns the folder with the packages, none of which is built yet."""
    return node.packages(HERE, node.LOCKED, "--ignore-scripts") / "node_modules"


def version(package: str) -> str:
    return str(json.loads((packages() / package / "package.json").read_text())["version"])


def built(folder: Path, *commands: list[str]) -> Path:
    """Returns the folder after it was built once."""
    mark = folder / ".built"
    with locked(f"built-{folder.name}"):
        if not mark.exists():
            for command in commands:
                program, *arguments = command
                run(["env", "-C", str(folder), program, *arguments], timeout_s=BUILD_TIMEOUT_S)
            mark.touch()
    return folder


def named(title: str) -> str:
    """Returns the name of a test in the results, in which a slash would begin the name of a subtest."""
    return title.replace("/", SLASH)


class MochaTests(NamedTuple):
    """Tests of a package with native code, run by mocha."""

    package: str
    files: str
    environment: Callable[[Nodes], Mapping[str, str]]
    timeout_s: int

    def versions(self) -> dict[str, str]:
        return {self.package: version(self.package), "node": run(["node", "--version"]).stdout.decode().strip()}

    def alone(self, name: str) -> str:
        return f"^{re.escape(name).replace(SLASH, '/')}$"

    def run(self, nodes: Nodes, tests: str, process: Process) -> dict[str, Result]:
        gyp = str(packages() / "node-gyp" / "bin" / "node-gyp.js")
        folder = built(packages() / self.package, ["node", gyp, "rebuild", f"--nodedir={NODE_HEADERS}"])
        report = process.output.with_suffix(".json")
        report.unlink(missing_ok=True)
        files = sorted(map(str, folder.glob(self.files)))
        mocha = ["node", str(packages() / "mocha" / "bin" / "mocha.js"), "--exit"]
        mocha += ["--timeout", str(1_000 * self.timeout_s), "--reporter", "json"]
        mocha += ["--reporter-option", f"output={report}", *(["--grep", tests] if tests else []), *files]
        process.run([*mocha, "--dry-run"], self.environment(nodes), folder)
        names = [named(test["fullTitle"]) for test in json.loads(report.read_text())["tests"]]
        report.unlink()
        process.run(mocha, self.environment(nodes), folder)
        ended = json.loads(report.read_text()) if report.exists() else {}
        return {name: Result(Outcome.NOT_RUN) for name in names} | reported(ended, names)


def reported(report: Mapping[str, list[dict[str, Any]]], names: Iterable[str]) -> dict[str, Result]:
    """Returns the results in mocha's report. A failed hook has the name of its test in quotes."""
    results: dict[str, Result] = {}
    for part, outcome in (("passes", Outcome.PASSED), ("pending", Outcome.SKIPPED), ("failures", Outcome.FAILED)):
        for test in report.get(part, []):
            title = named(test["fullTitle"])
            hook = re.search(r'^(.*?) ?"[^"]+" hook for "(.+)"$', title, re.S)
            short = hook[2] if hook else title
            name = next((name for name in names if hook and name.endswith(short)), short)
            reason = test["err"].get("message", "").partition("\n")[0][:REASON_LENGTH]
            results[name] = Result(outcome, test.get("duration", 0) / 1_000, reason)
    return results


LIBRDKAFKA = "@confluentinc/kafka-javascript"
LOCAL = re.compile(r"_TEST\((\w+),\s*([^,)]+)")
STATES = {"PASSED": Outcome.PASSED, "FAILED": Outcome.FAILED, "SKIPPED": Outcome.SKIPPED, "RUNNING": Outcome.UNFINISHED}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FAILED = re.compile(r"(?:### Test \"[^\"]+\" failed|Test failed).*|.*TEST_FAIL.*|.*: FAIL.*")


class LibrdkafkaTests(NamedTuple):
    """librdkafka's tests that use a broker, each in a process of its own, in their quick mode."""

    group_protocol: str

    def versions(self) -> dict[str, str]:
        header = (packages() / LIBRDKAFKA / "deps" / "librdkafka" / "src" / "rdkafka.h").read_text()
        number = re.findall(r"#define RD_KAFKA_VERSION (0x\w{6})", header)[0]
        parts = [str(byte) for byte in int(number, 16).to_bytes(3, "big")]
        return {LIBRDKAFKA: version(LIBRDKAFKA), "librdkafka": ".".join(parts)}

    def alone(self, name: str) -> str:
        return name

    def run(self, nodes: Nodes, tests: str, process: Process) -> dict[str, Result]:
        jobs = f"-j{os.cpu_count()}"
        root = built(
            packages() / LIBRDKAFKA / "deps" / "librdkafka",
            ["./configure", "--disable-gssapi", "--disable-curl"],
            ["make", jobs, "libs"],
            ["make", jobs, "-C", "tests", "test-runner"],
        )
        folder = root / "tests"
        settings = process.output.with_suffix(".conf")
        settings.write_text(f"metadata.broker.list={nodes.addresses('PLAINTEXT')}\ntest.topic.random=true\n")
        environment = {**tools(nodes, process.output.with_suffix(".kafka")), "RDKAFKA_TEST_CONF": str(settings)}
        results: dict[str, Result] = {}
        for name in [tests] if tests else needing_broker((folder / "test.c").read_text()):
            results |= self._test(name, folder, environment, process)
        return results

    def _test(self, name: str, folder: Path, environment: Mapping[str, str], process: Process) -> dict[str, Result]:
        report = process.output.with_suffix(".json")
        report.unlink(missing_ok=True)
        environment = {
            **environment,
            "TEST_REPORT": str(report),
            "TESTS": name,
            "TEST_KAFKA_VERSION": APACHE_KAFKA,
            "TEST_CONSUMER_GROUP_PROTOCOL": self.group_protocol,
            "LD_LIBRARY_PATH": f"{folder.parent / 'src'}:{folder.parent / 'src-cpp'}",
        }
        lines = process.run([str(folder / "test-runner"), "-p1", "-Q", "-L", "-S"], environment, folder)
        if not report.exists():
            return {name: Result(Outcome.UNFINISHED, reason=reason_of(lines))}
        ended = {test: found for test, found in json.loads(report.read_text())["tests"].items() if test == name}
        return {
            test: Result(
                STATES[found["state"]],
                round(found["duration"], 1),
                "" if found["state"] == "PASSED" else found["extra"] or reason_of(lines),
            )
            for test, found in ended.items()
        }


def tools(nodes: Nodes, home: Path) -> Mapping[str, str]:
    """Returns variables that name the cluster, and a folder with the scripts of Apache Kafka that the tests run."""
    scripts = home / "bin"
    scripts.mkdir(parents=True, exist_ok=True)
    for name in ("kafka-acls", "kafka-topics"):
        script = scripts / f"{name}.sh"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(jvm.command_of(name))} "$@"\n')
        script.chmod(0o755)
    return {"KAFKA_PATH": str(home), "BROKERS": nodes.addresses("PLAINTEXT")}


def needing_broker(source: str) -> list[str]:
    """Returns the names of the tests in test.c that use a broker, and need no scenario or script of their own."""
    table = source[source.index("struct test tests[]") :]
    flags = dict(LOCAL.findall(table))
    return [name for name, flag in flags.items() if "LOCAL" not in flag and "MANUAL" not in flag]


def reason_of(lines: Iterable[str]) -> str:
    """Returns the first line about a failure, and the next: the failure follows the line with its test and place."""
    plain = [COLOUR.sub("", line).strip() for line in lines]
    first = next((at for at, line in enumerate(plain) if FAILED.search(line)), len(plain))
    return " ".join(plain[first : first + 2])[:REASON_LENGTH]
