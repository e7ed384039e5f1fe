"""franz-go's own tests of its packages kgo and kadm, on a cluster of Odradek or of Apache Kafka.

`python -m tests.interop.suites.franz_go --broker odradek --nodes 3 --kill-every-s 20` starts a cluster, runs the tests,
and writes a JSON file with the outcome of each. The tests come from the Go module proxy, in the versions of go.mod.
Odradek is the wheel of this tree. Each top-level test that fails runs once more, alone; no broker is killed by then.

The exit status is 1 if a test fails again. With `--against FILE`, the results of the same tests with another broker,
only tests count that did not fail again there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench import wheel
from bench.jars import APACHE_KAFKA
from tests.interop.brokers import Odradek
from tests.interop.either_node import Make
from tests.interop.processes import CACHE, run
from tests.interop.suites.franz_go import outcomes
from tests.interop.suites.franz_go.nodes import MECHANISM, PASSWORD, USER, Killer, Nodes
from tests.interop.suites.franz_go.outcomes import FAILURES, Outcome, Result

HERE = Path(__file__).parent
PACKAGES = ("github.com/twmb/franz-go/pkg/kgo/...", "github.com/twmb/franz-go/pkg/kadm")
MODULES = ("github.com/twmb/franz-go", "github.com/twmb/franz-go/pkg/kadm")
RECORDS = 50_000
"""Records of each of franz-go's long tests. Its own default, 500,000, takes much longer and tests the same."""
TIMEOUT_S = 1_200
LINE_LENGTH = 500
ERROR = re.compile(r'"level": "(?:error|critical)"|^Traceback|\] ERROR ')


class Run(NamedTuple):
    """The options of a run."""

    broker: Make
    nodes: int
    kill_every_s: float
    """Seconds between two kills; 0 kills no broker."""
    records: int
    tests: str
    """A pattern of the names of tests."""
    timeout_s: int

    @property
    def name(self) -> str:
        """The name of the file of results."""
        kills = f"-kills-{self.kill_every_s:g}s" if self.kill_every_s else ""
        return f"franz-go-{self.broker.value}-{self.nodes}{kills}"


class Suite:
    """The tests, as `go test` runs them."""

    def __init__(self, options: Run, nodes: Nodes, output: Path) -> None:
        self._options = options
        self._output = output
        """The file with the output of the tests."""
        self._environment = {
            **os.environ,
            "KGO_LOG_LEVEL": os.environ.get("KGO_LOG_LEVEL", "none"),
            "KGO_SEEDS": nodes.addresses("PLAINTEXT"),
            "KGO_TEST_RF": "3" if options.nodes >= 3 else "1",
            "KGO_TEST_RECORDS": str(options.records),
            "KGO_TEST_SCRAM": f"{USER}:{PASSWORD}:{MECHANISM.rsplit('-', 1)[-1]}",
            "KGO_TEST_SCRAM_SEEDS": nodes.addresses("SASL"),
        }

    def run(self, tests: str) -> dict[str, Result]:
        """Runs the tests whose names match a pattern, and returns their results."""
        named = outcomes.listed(self._go("-list", tests))
        return outcomes.outcomes(self._go("-run", tests, "-timeout", f"{self._options.timeout_s}s"), named)

    def _go(self, *arguments: str) -> list[str]:
        """Returns the events of `go test`."""
        command = ["go", "-C", str(HERE), "test", "-vet=off", "-count=1", "-json", *arguments, *PACKAGES]
        begins = self._output.stat().st_size
        with self._output.open("a") as output:
            tests = subprocess.Popen(
                command, env=self._environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                tests.wait()
            finally:  # `go` doesn't end the program that it has built
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(tests.pid, signal.SIGKILL)
                tests.wait()
        return self._output.read_bytes()[begins:].decode(errors="replace").splitlines()

    def run_again(self, results: Mapping[str, Result]) -> dict[str, Result]:
        """Runs each top-level test that failed once more, alone, and returns those results."""
        again: dict[str, Result] = {}
        for name in outcomes.top_level(name for name, result in results.items() if result.outcome in FAILURES):
            again |= self.run(f"^{name.split('.', 1)[1]}$")
        return again


def measure(options: Run, work: Path) -> dict[str, Any]:
    """Runs the suite on a new cluster, and returns the results as JSON."""
    output = CACHE / "suites" / f"{options.name}.log"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("")
    nodes = Nodes(work, options.broker, options.nodes)
    suite = Suite(options, nodes, output)
    killer = Killer(nodes.brokers, options.kill_every_s)
    try:
        nodes.start()
        began = time.monotonic()
        with killer:
            results = suite.run(options.tests)
        seconds = time.monotonic() - began
        again = suite.run_again(results)
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
    }


def about(options: Run) -> dict[str, object]:
    """Returns the versions and the options of a run."""
    modules = run(["go", "-C", str(HERE), "list", "-m", *MODULES]).stdout.decode().splitlines()
    return {
        "suite": dict(module.split() for module in modules),
        "go": run(["go", "version"]).stdout.decode().strip(),
        "broker": options.broker.value,
        "version": APACHE_KAFKA if options.broker is Make.APACHE else wheel.folder().name,
        "commit": wheel.git("rev-parse", "HEAD").decode().strip(),
        "nodes": options.nodes,
        "kill_every_s": options.kill_every_s,
        "records": options.records,
        "pattern": options.tests,
    }


def log_errors(log: Path) -> list[str]:
    """Returns the lines of a node's log at level error, and of tracebacks."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line[:LINE_LENGTH] for line in lines if ERROR.search(line)]


def failures(result: Mapping[str, Any], control: Mapping[str, Any] | None) -> list[str]:
    """Returns the tests that failed twice, without tests that failed twice in the control as well."""
    failed = failed_twice(result)
    return failed if control is None else [name for name in failed if name not in failed_twice(control)]


def failed_twice(result: Mapping[str, Any]) -> list[str]:
    """Returns the top-level tests that failed in the run, and again alone."""
    failed = [
        {name.split("/")[0] for name, test in result[part].items() if Outcome(test["outcome"]) in FAILURES}
        for part in ("tests", "again")
    ]
    return sorted(failed[0] & failed[1])


def parse(arguments: list[str]) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        prog="python -m tests.interop.suites.franz_go",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--broker", type=Make, choices=list(Make), default=Make.ODRADEK)
    parser.add_argument("--nodes", type=int, default=3, metavar="N", help="number of brokers (%(default)s)")
    parser.add_argument("--kill-every-s", type=float, default=0, metavar="S", help="kill a broker so often (never)")
    parser.add_argument("--records", type=int, default=RECORDS, metavar="N", help="of each long test (%(default)s)")
    parser.add_argument("--tests", default=".", metavar="PATTERN", help="tests to run, as of `go test -run` (all)")
    parser.add_argument("--timeout-s", type=int, default=TIMEOUT_S, metavar="S", help="of a package (%(default)s)")
    parser.add_argument("--results", type=Path, default=CACHE / "suites", metavar="DIR", help="(.cache/suites)")
    parser.add_argument("--against", type=Path, metavar="FILE", help="results of another broker, to judge by")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # which ends the cluster, too
    parsed = parse(arguments)
    options = Run(parsed.broker, parsed.nodes, parsed.kill_every_s, parsed.records, parsed.tests, parsed.timeout_s)
    if options.broker is Make.ODRADEK:
        Odradek.program = wheel.program()
        wheel.keep()
    with tempfile.TemporaryDirectory(prefix="franz-go-") as work:
        result = measure(options, Path(work))
    file = parsed.results / f"{options.name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(outcomes.as_text(result))
    print(file, f"{result['seconds']} s", f"{len(result['kills'])} kills", json.dumps(result["counts"]))
    control = json.loads(parsed.against.read_text()) if parsed.against else None
    failed = failures(result, control)
    for name in failed:
        print(f"{name} failed, and failed again alone")
    return 1 if failed or result["failure"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
