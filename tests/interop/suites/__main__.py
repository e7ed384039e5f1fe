"""Test suites that others wrote, on clusters of Odradek or of Apache Kafka.

`python -m tests.interop.suites kafka-python sarama --broker odradek --nodes 3` runs suites one after another, each on a
cluster of its own, and writes a JSON file with the outcome of each test into --results. `mixed` is a cluster of two
brokers and a controller of Odradek, and a broker of Apache Kafka. Odradek is the wheel of this tree. The suites come
from package registries, in locked versions. apache-clients, apache-tools and apache-streams are Apache Kafka's own
JUnit suites, which start their own clusters (see tests.interop.suites.apache).

With --decode, a proxy in front of each broker reads each response to clients of the listener PLAINTEXT with the classes
of Apache Kafka and writes it again: a run fails if a response is malformed, has other bytes, comes out of order or has
a damaged batch of records.

Each top-level test that fails runs once more, alone; no broker is killed by then. The exit status is 1 if a test fails
twice that expected.toml doesn't name, if a test passes that expected.toml names, or if a test fails twice that didn't
in the results that the new ones replace.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench import wheel
from bench.jars import APACHE_KAFKA
from tests.interop.brokers import Odradek
from tests.interop.either_node import Make
from tests.interop.processes import CACHE
from tests.interop.suites import outcomes
from tests.interop.suites.apache import __main__ as apache
from tests.interop.suites.apache.suites import SUITES as JUNIT_SUITES
from tests.interop.suites.nodes import MAKES, Killer, Nodes
from tests.interop.suites.outcomes import FAILURES, Outcome, Result
from tests.interop.suites.processes import Process
from tests.interop.suites.table import SUITES, Suite

RESULTS = Path(__file__).with_name("results")
APACHE = "apache-"
LINE_LENGTH = 500
ERROR = re.compile(r'"level": "(?:error|critical)"|^Traceback|\] ERROR ')


class Run(NamedTuple):
    """The options of a run."""

    suite: Suite
    broker: Make
    nodes: str
    kill_every_s: float = 0
    """Seconds between two kills; 0 kills no broker."""
    tests: str = ""
    """The suite's own selection of tests; empty for all."""
    decodes: bool = False
    """True if a proxy reads each response with Apache Kafka's classes."""

    @property
    def name(self) -> str:
        """The name of the file of results."""
        kills = f"-kills-{self.kill_every_s:g}s" if self.kill_every_s else ""
        decoded = "-decoded" if self.decodes else ""
        return f"{self.suite.name}-{self.broker.value}-{self.nodes}{kills}{decoded}"


def measure(options: Run, work: Path) -> dict[str, Any]:
    """Runs the suite on a new cluster, and returns the results as JSON."""
    suite = options.suite
    output = CACHE / "suites" / f"{options.name}.log"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("")
    nodes = Nodes(work, MAKES[options.nodes, options.broker], suite.settings, decodes=options.decodes)
    killer = Killer(nodes.brokers, options.kill_every_s)
    try:
        nodes.start()
        with suite.beside(nodes, work) as environment:
            process = Process(output, suite.timeout_s, environment)
            began = time.monotonic()
            with killer:
                results = suite.kind.run(nodes, options.tests, process)
            seconds = time.monotonic() - began
            again = run_again(suite, nodes, results, process)
        decoded = {"decoded": nodes.decoder.report()._asdict()} if nodes.decoder else {}
    finally:
        nodes.forget()
    return {
        **about(options),
        "seconds": round(seconds),
        "kills": [kill._asdict() for kill in killer.kills],
        "failure": killer.failure,
        "counts": outcomes.counts(results),
        "tests": outcomes.as_json(results),
        "again": outcomes.as_json(again),
        "log_errors": {node.data.name: log_errors(node.log) for node in nodes.all},
        **decoded,
    }


def run_again(suite: Suite, nodes: Nodes, results: dict[str, Result], process: Process) -> dict[str, Result]:
    """Runs each top-level test that failed once more, alone, and returns those results."""
    again: dict[str, Result] = {}
    for name in outcomes.top_level(name for name, result in results.items() if result.outcome in FAILURES):
        again |= {name: Result(Outcome.UNFINISHED)} | suite.kind.run(nodes, suite.kind.alone(name), process)
    return again


def about(options: Run) -> dict[str, object]:
    """Returns the versions and the options of a run."""
    return {
        "name": options.suite.name,
        "suite": options.suite.kind.versions(),
        "broker": options.broker.value,
        "version": APACHE_KAFKA if options.broker is Make.APACHE else wheel.folder().name,
        "commit": wheel.commit(),
        "nodes": options.nodes,
        "kill_every_s": options.kill_every_s,
    }


def log_errors(log: Path) -> list[str]:
    """Returns the lines of a node's log at level error, and of tracebacks."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line[:LINE_LENGTH] for line in lines if ERROR.search(line)]


def judge(options: Run, result: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    """Returns a line for each unexpected outcome. Under kills, only a broker that doesn't start again is unexpected."""
    lines = [result["failure"]] if result["failure"] else []
    lines += result.get("decoded", {}).get("defects", [])
    if not options.kill_every_s:
        entries = outcomes.expected(options.suite.name, options.broker.value, options.nodes)
        lines += outcomes.surprises(result, entries)
        named = {name for entry in entries for name in entry.tests}
        worse = outcomes.regressions(before, result) if before else []
        lines += [f"{name} no longer passes" for name in worse if name not in named]
    return lines


def run_one(options: Run, folder: Path) -> list[str]:
    """Runs a suite and writes its results, unless only some of its tests ran. Returns a line for each surprise."""
    with tempfile.TemporaryDirectory(prefix=f"{options.suite.name}-") as work:
        result = measure(options, Path(work))
    file = folder / f"{options.name}.json"
    before = json.loads(file.read_text()) if file.exists() else None
    if not options.tests:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(outcomes.as_text(result))
    print(options.name, f"{result['seconds']} s", f"{len(result['kills'])} kills", json.dumps(result["counts"]))
    found = judge(options, result, before)
    print(*(f"    {line}" for line in found), sep="\n", flush=True)
    return found


def parse(arguments: list[str]) -> argparse.Namespace:
    assert __doc__ is not None
    names = [suite.name for suite in SUITES] + [f"{APACHE}{suite.name}" for suite in JUNIT_SUITES]
    parser = argparse.ArgumentParser(
        prog="python -m tests.interop.suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", choices=[*names, []], default=[], metavar="SUITE", help=", ".join(names))
    parser.add_argument("--broker", type=Make, choices=list(Make), default=Make.ODRADEK)
    parser.add_argument("--nodes", choices=("1", "3", "mixed"), default="3", help="(%(default)s)")
    parser.add_argument("--kill-every-s", type=float, default=0, metavar="S", help="kill a broker so often (never)")
    parser.add_argument("--decode", action="store_true", help="read each response with Apache Kafka's classes")
    parser.add_argument("--tests", default="", metavar="SELECTION", help="of the suite's own program (all)")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="classes of a JUnit suite at a time (%(default)s)"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # which ends the cluster, too
    parsed = parse(arguments)
    if Make.ODRADEK in MAKES[parsed.nodes, parsed.broker]:
        Odradek.program = wheel.program()
        wheel.keep()
    found: list[str] = []
    for suite in SUITES:
        if suite.name in parsed.suites and parsed.nodes in suite.nodes:
            run = Run(suite, parsed.broker, parsed.nodes, parsed.kill_every_s, parsed.tests, parsed.decode)
            found += run_one(run, parsed.results)
    of_apache = [name.removeprefix(APACHE) for name in parsed.suites if name.startswith(APACHE)]
    if of_apache:
        options = {"--broker": parsed.broker.value, "--results": parsed.results, "--jobs": parsed.jobs}
        options |= {"--classes": parsed.tests} if parsed.tests else {}
        return max(
            apache.main([*of_apache, *(str(word) for option in options.items() for word in option)]), bool(found)
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
