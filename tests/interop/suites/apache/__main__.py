"""Apache Kafka's own JUnit suites, on clusters of Odradek or of Apache Kafka.

`python -m tests.interop.suites.apache clients tools streams` runs the suites class by class, each class in a JVM of its
own, and writes a JSON file per suite into --results. The brokers are Odradek's wheel of this tree, forked from one
process that has imported everything; the classes in PLAIN use `odradek run`. With --broker apache, the same tests run
on the brokers that Apache Kafka's own harness starts: the control.

A test that ends otherwise than expected.toml says runs once more, alone. The exit status is 1 if any test does so
twice, if an entry of expected.toml names no test, or if a node's log has a line of level error.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from bench import wheel
from bench.jars import APACHE_TOOLS
from tests.interop.processes import CACHE
from tests.interop.suites.apache import outcomes
from tests.interop.suites.apache.outcomes import PASSED, Expected
from tests.interop.suites.apache.runs import ClassRun, Cluster, Runner, kill_all
from tests.interop.suites.apache.suites import SUITES, Suite, classes

RESULTS = Path(__file__).parents[1] / "results"
PLAIN = frozenset({"AdminFenceProducersTest", "DeleteTopicTest", "GetOffsetShellTest", "WordCountTest"})
"""Classes whose nodes are processes of their own, as users start them."""


def simple(name: str) -> str:
    return name.rpartition(".")[2]


def cluster_of(broker: str, name: str) -> Cluster:
    if broker == "apache":
        return Cluster(is_odradek=False, program="", packages=None)
    packages = None if simple(name) in PLAIN else wheel.launcher().parent
    return Cluster(is_odradek=True, program=wheel.program(), packages=packages)


def as_json(run: ClassRun, commit: str) -> dict[str, object]:
    """Returns the result of a class: counts, and every test that did not pass at once."""
    others = {name: {"outcome": test.outcome, "reason": test.reason} for name, test in run.tests.items()}
    others = {name: other for name, other in others.items() if other["outcome"] != PASSED}
    for name, test in run.again.items():
        others[name]["again"] = test.outcome
    counts = outcomes.counts(run.final.values())
    return {"commit": commit, "seconds": run.seconds, "counts": counts, "others": others, "log_errors": run.log_errors}


def measure(suite: Suite, names: list[str], broker: str, file: Path, logs: Path, jobs: int) -> list[str]:
    """Runs classes, `jobs` at a time and the longest first, and writes the file of results after each class. Returns a
    line for each unexpected outcome."""
    entries = outcomes.expected() if broker == "odradek" else []
    commit = wheel.commit()
    results = json.loads(file.read_text())["classes"] if file.exists() else {}
    names = sorted(names, key=lambda name: -results.get(simple(name), {}).get("seconds", 0.0))
    surprises: list[str] = []
    for name, run in run_all(suite, names, broker, logs, entries, jobs):
        results[simple(name)] = as_json(run, commit)
        found = [*outcomes.surprises(run.final, entries), *run.log_errors]
        surprises += found
        print(
            simple(name), f"{run.seconds:.0f} s", outcomes.counts(run.final.values()), *found, sep="\n    ", flush=True
        )
        about = {"suite": f"Apache Kafka's {suite.name} suite", "version": APACHE_TOOLS, "broker": broker}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**about, "classes": dict(sorted(results.items()))}, indent=1) + "\n")
    return surprises


def run_all(
    suite: Suite, names: list[str], broker: str, logs: Path, entries: list[Expected], jobs: int
) -> Iterator[tuple[str, ClassRun]]:
    """Runs classes, `jobs` at a time, and yields each with its results when it ends."""
    threads = ThreadPoolExecutor(jobs)
    try:
        runs = {
            threads.submit(Runner(suite, cluster_of(broker, name), logs).run, name, entries): name for name in names
        }
        for run in as_completed(runs):
            yield runs[run], run.result()
    finally:  # also when this process is told to end
        threads.shutdown(wait=False, cancel_futures=True)
        kill_all()


def suite_of(name: str) -> Suite:
    """Returns a suite by its name."""
    found = {suite.name: suite for suite in SUITES}
    if name not in found:
        raise argparse.ArgumentTypeError(f"{name}: there are {', '.join(found)}")
    return found[name]


def parse(arguments: list[str]) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        prog="python -m tests.interop.suites.apache",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(suite.name for suite in SUITES)
    parser.add_argument("suites", nargs="*", type=suite_of, default=SUITES, metavar="SUITE", help=f"{names} (all)")
    parser.add_argument("--broker", choices=("odradek", "apache"), default="odradek")
    parser.add_argument("--classes", default="", metavar="NAMES", help="simple names, with commas between (all)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="classes that run at a time (%(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="(a new folder in .cache/suites)")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    parsed = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the JVM and its brokers end, too
    (CACHE / "suites").mkdir(parents=True, exist_ok=True)
    logs = parsed.logs or Path(tempfile.mkdtemp(prefix="apache-", dir=CACHE / "suites"))
    print(f"logs: {logs}", flush=True)
    if parsed.broker == "odradek":
        wheel.program()
        wheel.keep()
    wanted = set(filter(None, parsed.classes.split(",")))
    surprises: list[str] = []
    for suite in parsed.suites:
        names = [name for name in classes(suite) if not wanted or simple(name) in wanted]
        file = parsed.results / f"apache-{suite.name}-{parsed.broker}.json"
        surprises += measure(suite, names, parsed.broker, file, logs / f"{suite.name}-{parsed.broker}", parsed.jobs)
    for line in surprises:
        print(line)
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
