"""The suites of clients, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from bench.jars import APACHE_KAFKA
from tests.interop.suites import toxiproxy
from tests.interop.suites.go_tests import GoTests
from tests.interop.suites.node_tests import LibrdkafkaTests, MochaTests
from tests.interop.suites.nodes import MECHANISM, PASSWORD, USER, Nodes
from tests.interop.suites.outcomes import Result
from tests.interop.suites.processes import Process
from tests.interop.suites.python_tests import PythonTests


class Kind(Protocol):
    """The tests of a suite, and the program that runs them."""

    def versions(self) -> dict[str, str]:
        """Returns the versions of the packages and of the language."""
        ...

    def run(self, nodes: Nodes, tests: str, process: Process) -> dict[str, Result]:
        """Runs the selected tests, or all if `tests` is empty, and returns their results."""
        ...

    def alone(self, name: str) -> str:
        """Returns the selection of one test, by its name in the results."""
        ...


def nothing_else(_: int) -> Mapping[str, str]:
    return {}


@contextmanager
def nothing_beside(_nodes: Nodes, _folder: Path) -> Iterator[Mapping[str, str]]:
    yield {}


class Suite(NamedTuple):
    """A suite, with what its tests need of a cluster."""

    name: str
    title: str
    kind: Kind
    settings: Callable[[int], Mapping[str, str]] = nothing_else
    """Settings of the broker with an id, beside those of all clusters."""
    beside: Callable[[Nodes, Path], AbstractContextManager[Mapping[str, str]]] = nothing_beside
    """Runs other programs beside the tests, and yields environment variables of the tests."""
    nodes: tuple[str, ...] = ("1", "3", "mixed")
    """The clusters on which the suite runs."""
    timeout_s: int = 1_200
    """Time limit of one process of tests."""


def one_replica(_: int) -> Mapping[str, str]:
    """Settings for tests that create topics with one replica, and produce to them with acks=all."""
    return {"min.insync.replicas": "1", "group.initial.rebalance.delay.ms": "0"}


def four_partitions(number: int) -> Mapping[str, str]:
    """Settings for tests that produce to partitions of topics that the broker creates."""
    return {**one_replica(number), "num.partitions": "4"}


def _franz_go(nodes: Nodes) -> Mapping[str, str]:
    return {
        "KGO_LOG_LEVEL": os.environ.get("KGO_LOG_LEVEL", "none"),
        "KGO_SEEDS": nodes.addresses("PLAINTEXT"),
        "KGO_TEST_RF": "3" if len(nodes.brokers) >= 3 else "1",
        # its own default, 500,000, takes much longer and tests the same
        "KGO_TEST_RECORDS": os.environ.get("KGO_TEST_RECORDS", "50000"),
        "KGO_TEST_SCRAM": f"{USER}:{PASSWORD}:{MECHANISM.rsplit('-', 1)[-1]}",
        "KGO_TEST_SCRAM_SEEDS": nodes.addresses("SASL"),
    }


def from_zero(number: int) -> Mapping[str, str]:
    """Settings for tests that also use broker 0, and sessions of 3 s, which are shorter than Kafka's default allows."""
    return {**four_partitions(number), "node.id": str(number - 1), "group.min.session.timeout.ms": "3000"}


def _kafka_python(nodes: Nodes) -> Mapping[str, str]:
    first = nodes.addresses("PLAINTEXT").split(",")[0]
    # the folder of a broker that the tests could start; it must exist, too, if they start none
    return {"KAFKA_URI": f"kafka://{first}", "KAFKA_VERSION": APACHE_KAFKA, "KAFKA_ROOT": "/"}


SUITES = (
    Suite(
        "franz-go",
        "franz-go: `kgo`, `kadm`",
        GoTests(
            ("github.com/twmb/franz-go", "github.com/twmb/franz-go/pkg/kadm"),
            ("github.com/twmb/franz-go/pkg/kgo/...", "github.com/twmb/franz-go/pkg/kadm"),
            _franz_go,
        ),
    ),
    Suite(
        "sarama",
        "sarama: functional tests",
        GoTests(("github.com/IBM/sarama",), ("github.com/IBM/sarama",), lambda _: {}, tags="functional"),
        toxiproxy.settings,
        toxiproxy.proxies,
        ("3", "mixed"),
        1_800,
    ),
    Suite(
        "kafka-python",
        "kafka-python: `test/integration`",
        PythonTests("kafka-python", "test/integration", _kafka_python),
        from_zero,
    ),
    Suite(
        "node-rdkafka",
        "node-rdkafka: `e2e`",
        MochaTests("node-rdkafka", "e2e/*.spec.js", lambda nodes: {"KAFKA_HOST": nodes.addresses("PLAINTEXT")}, 60),
        one_replica,
        timeout_s=240,  # a consumer whose disconnect() never ends keeps the process alive (see expected.toml)
    ),
    *(
        Suite(
            f"librdkafka-{protocol}",
            f"librdkafka: its tests with brokers, group protocol `{protocol}`",
            LibrdkafkaTests(protocol),
            four_partitions,
            timeout_s=300,
        )
        for protocol in ("classic", "consumer")
    ),
)
