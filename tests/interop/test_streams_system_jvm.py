"""Tests the programs of Apache Kafka's system tests of Streams, in kafka-streams:test. They print what Apache's tests
expect, with both group protocols.

The other program, StreamsSmokeTest, has a module of its own.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.jars import APACHE_TOOLS, resolve
from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent
from tests.interop.consumed import value_of
from tests.interop.processes import Server
from tests.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

WITHIN_S = 180
"""Time that Apache's tests give a program for a step, and more: several JVMs share two cores."""

RELATIONAL_WITHIN_S = 600
"""Time in which the driver of RelationalSmokeTest writes its records, and then reads the output: its own timeout."""

DOWN_S = 15
REQUEST_TIMEOUT_MS = 3_000
"""Twice the retries of a producer, each of this time, are shorter than DOWN_S."""

SETTINGS = (
    "consumer.max.poll.interval.ms=50000",
    "producer.retries=2",
    f"producer.request.timeout.ms={REQUEST_TIMEOUT_MS}",
    f"producer.max.block.ms={2 * REQUEST_TIMEOUT_MS}",
)
"""The settings that two of the programs require."""

LEGACY_ASSIGNOR = (
    "internal.task.assignor.class=org.apache.kafka.streams.processor.internals.assignment.LegacyStickyTaskAssignor"
)
"""An assignor without warm-up tasks, for the classic protocol; the streams protocol ignores it."""

LOGGED = ("org.apache.kafka.streams", "org.apache.kafka.clients.consumer")
PORTION = 300
RESILIENCE = "StreamsBrokerDownResilienceTest"


@pytest.fixture
def properties() -> dict[str, str]:
    return {
        "group.streams.initial.rebalance.delay.ms": "500",
        "group.streams.min.heartbeat.interval.ms": "500",
        "group.streams.heartbeat.interval.ms": "500",
        "group.streams.min.session.timeout.ms": "6000",
        "group.streams.session.timeout.ms": "10000",
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "5",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


@pytest.fixture(params=["classic", "streams"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@cache
def jars() -> Path:
    return resolve(f"streams-smoke-{APACHE_TOOLS}", jvm.HERE / "streams-smoke.xml", f"-Dkafka.version={APACHE_TOOLS}")


class Program(Server):
    """One of the programs. It has the same arguments and state after a restart."""

    def __init__(self, name: str, log: Path, main: str, *arguments: str, ready: str) -> None:
        super().__init__(name, log)
        flags = tuple(f"-Dorg.slf4j.simpleLogger.log.{logger}=info" for logger in LOGGED)
        classpath = f"{jars()}/*"
        self._command = jvm.java(classpath, f"org.apache.kafka.streams.tests.{main}", *arguments, flags=flags)
        self._ready = ready
        self._began = 0

    def start(self) -> None:
        self._began = self.log.stat().st_size if self.log.exists() else 0
        self.launch(self._command, self._ready, WITHIN_S)

    def restart_killed(self) -> None:
        """Kills the program, and starts it at once."""
        self.kill9()
        self.start()

    @property
    def printed(self) -> str:
        """Its output since it was last started."""
        return self.log.read_bytes()[self._began :].decode(errors="replace")

    def count(self, pattern: str) -> int:
        """Returns the number of lines with the pattern that it has printed since it was last started."""
        return sum(bool(re.search(pattern, line)) for line in self.printed.splitlines())

    def await_line(self, pattern: str, times: int = 1, within_s: float = WITHIN_S) -> None:
        """Waits until it has printed lines with the pattern."""
        wait_until(lambda: self.count(pattern) >= times, self.tail, within_s=within_s, pause_s=0.2)

    def end(self, last_line: str) -> None:
        """Ends the program as an operator does; its last words are these."""
        self.signal(signal.SIGTERM)
        self.wait(WITHIN_S)
        assert last_line in self.printed, self.tail()


class System:
    """A broker, the programs of a test, and the records that the test writes and reads."""

    def __init__(self, broker: Broker, folder: Path, protocol: str) -> None:
        self.broker = broker
        self.folder = folder
        self.protocol = protocol
        self._programs: list[Program] = []
        self._values = count()

    def create(self, **topics: int) -> None:
        """Creates topics with these numbers of partitions; `_` stands for `-` in their names."""
        for topic, partitions in topics.items():
            Confluent().create(self.broker.bootstrap, topic.replace("_", "-"), partitions)

    def run(self, name: str, main: str, *arguments: str, ready: str) -> Program:
        """Returns a program that is started."""
        program = Program(name, self.folder / f"{name}.log", main, *arguments, ready=ready)
        self._programs.append(program)
        program.start()
        return program

    def stream(self, name: str, main: str, *arguments: str, **settings: str) -> Program:
        """Returns a started program that reads a file of properties, with `__` for each dot."""
        file = self.folder / f"{name}.properties"
        options = {
            "bootstrap.servers": self.broker.bootstrap,
            "group.protocol": self.protocol,
            "state.dir": str(self.folder / name),
            "acceptable.recovery.lag": str(2**63 - 1),  # the classic assignor moves tasks at once
            **{key.replace("__", "."): value for key, value in settings.items()},
        }
        if self.protocol == "classic":
            options.setdefault("session.timeout.ms", "10000")
        file.write_text("".join(f"{key}={value}\n" for key, value in options.items()))
        return self.run(name, main, str(file), *arguments, ready="StreamsTest instance started")

    def forget(self) -> None:
        for program in self._programs:
            program.forget()

    def write(self, topic: str, number: int, keys: int = 0) -> list[bytes]:
        """Writes further numbers, with so many different keys or without keys; returns them."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        values = [b"%d" % next(self._values) for _ in range(number)]
        for index, value in enumerate(values):
            producer.produce(topic, value, b"%d" % (index % keys) if keys else None)
        assert not producer.flush(WITHIN_S)
        return values

    def feed(self, topic: str, programs: list[Program], pattern: str, keys: int = 0) -> list[bytes]:
        """Writes records until each of the programs has printed another line with the pattern; returns the records."""
        before = [program.count(pattern) for program in programs]
        values: list[bytes] = []

        def numbers() -> list[int]:
            return [program.count(pattern) for program in programs]

        def have_printed() -> bool:
            values.extend(self.write(topic, PORTION, keys))
            return all(number > earlier for number, earlier in zip(numbers(), before, strict=True))

        wait_until(have_printed, lambda: (before, numbers()), within_s=WITHIN_S, pause_s=1)
        return values

    def await_values(self, topic: str, is_all: Callable[[list[tuple[bytes, bytes]]], bool]) -> None:
        """Waits until a topic of one partition has all expected keys and values."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "unused"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[tuple[bytes, bytes]] = []

        def complete() -> bool:
            messages = consumer.consume(1_000, timeout=0.5)
            found.extend(
                (bytes(message.key() or b""), value_of(message)) for message in messages if not message.error()
            )
            return is_all(found)

        try:
            wait_until(complete, lambda: (len(found), found[-10:]), within_s=WITHIN_S)
        finally:
            consumer.close()


@pytest.fixture
def system(broker: Broker, tmp_path: Path, protocol: str) -> Iterator[System]:
    system = System(broker, tmp_path, protocol)
    yield system
    system.forget()


# RelationalSmokeTest (streams_relational_smoke_test.py)


def relational(system: System, name: str) -> Program:
    """Returns an application; it has a group of its own, which reads all articles and comments."""
    arguments = (system.broker.bootstrap, name, "exactly_once_v2", system.protocol, str(system.folder / name))
    return system.run(name, "RelationalSmokeTest", "application", *arguments, ready="Streams has started")


@pytest.mark.parametrize("end", [Program.stop, Program.kill9], ids=["stopped", "killed"])
def test_joins_are_complete_after_applications_end_and_start(system: System, end: Callable[[Program], object]) -> None:
    system.create(in_article=3, in_comment=5, out_augmented_article=3, out_augmented_comment=5)
    first, second = (relational(system, name) for name in ("first", "second"))
    arguments = ("driver", system.broker.bootstrap)
    driver = system.run("driver", "RelationalSmokeTest", *arguments, ready="sent in-article")
    driver.await_line("Consumed first Augmented", within_s=RELATIONAL_WITHIN_S)
    end(first)
    relational(system, "third")
    end(second)
    assert driver.wait(RELATIONAL_WITHIN_S) == 0
    assert "Evaluation passed (1000/1000) articles and (10000/10000) comments" in driver.printed, driver.tail()
    assert "Smoke test complete: passed" in driver.printed


# StreamsStandByReplicaTest (streams_standby_replica_test.py)

KEYS = 6
ACTIVE_6 = r"ACTIVE_TASKS:6 STANDBY_TASKS:0"
ACTIVE_3 = r"ACTIVE_TASKS:3 STANDBY_TASKS:3"
ACTIVE_2 = r"ACTIVE_TASKS:2 STANDBY_TASKS:[1-3]"
SHUT_DOWN = "Shut down streams now"


class StandBys:
    """Programs with standby tasks. Records are written while their tasks move."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.written = 0

    def settle(self, *programs: Program, tasks: str) -> None:
        """Writes records, and waits until each of the programs last printed these numbers of tasks."""
        self._system.write("source", 600, KEYS)
        self.written += 600

        def last(program: Program) -> str:
            printed: list[str] = re.findall(r"ACTIVE_TASKS:.*", program.printed)
            return printed[-1] if printed else ""

        def lines() -> list[str]:
            return [last(program) for program in programs]

        wait_until(lambda: all(re.fullmatch(tasks, line) for line in lines()), lines, within_s=WITHIN_S, pause_s=0.2)


def test_standby_tasks_take_over_and_return(system: System) -> None:
    system.create(source=KEYS, sink1=1, sink2=1)
    group = ("--alter", "--entity-type", "groups", "--entity-name", "standby")
    words = ("--bootstrap-server", system.broker.bootstrap, *group)
    jvm.tool("kafka-configs", *words, "--add-config", "streams.num.standby.replicas=1")
    settings = ",".join((*SETTINGS, "sourceTopic=source,sinkTopic1=sink1,sinkTopic2=sink2", LEGACY_ASSIGNOR))
    standbys = StandBys(system)

    def program(name: str) -> Program:
        options = {"application__id": "standby", "auto__offset__reset": "earliest"}
        return system.stream(name, "StreamsStandByReplicaTest", settings, **options)

    one = program("one")
    standbys.settle(one, tasks=ACTIVE_6)
    two = program("two")
    standbys.settle(one, two, tasks=ACTIVE_3)
    three = program("three")
    standbys.settle(one, two, three, tasks=ACTIVE_2)
    one.end(SHUT_DOWN)
    standbys.settle(two, three, tasks=ACTIVE_3)
    two.end(SHUT_DOWN)
    standbys.settle(three, tasks=ACTIVE_6)
    one.start()
    standbys.settle(one, three, tasks=ACTIVE_3)
    two.start()
    standbys.settle(one, two, three, tasks=ACTIVE_2)
    three.end(SHUT_DOWN)
    standbys.settle(one, two, tasks=ACTIVE_3)
    one.end(SHUT_DOWN)
    standbys.settle(two, tasks=ACTIVE_6)
    three.start()
    standbys.settle(two, three, tasks=ACTIVE_3)
    one.start()
    standbys.settle(one, two, three, tasks=ACTIVE_2)
    counts = {b"%d" % key: b"%d" % (standbys.written // KEYS) for key in range(KEYS)}
    for sink in ("sink1", "sink2"):
        system.await_values(sink, lambda found: dict(found) == counts)
    for each in (one, two, three):
        each.end(SHUT_DOWN)


# StaticMemberTestClient (streams_static_membership_test.py)

THREADS = 3
BOUNCES = 3


@pytest.mark.parametrize("protocol", ["classic"])  # Streams 4.3 has no static members with the streams protocol
def test_static_members_restart_without_a_rebalance(system: System) -> None:
    system.create(inputTopic=18)

    members: list[Program] = []
    for name in ("A", "B", "C"):
        settings = {"group__instance__id": f"consumer-{name}", "session__timeout__ms": "60000"}
        threads = {"num__stream__threads": str(THREADS), "input__topic": "inputTopic"}
        members.append(system.stream(name, "StaticMemberTestClient", **settings, **threads))
        members[-1].await_line("REBALANCING -> RUNNING")
    system.feed("inputTopic", members, "PROCESSED")
    for _ in range(BOUNCES):
        for member in members:
            member.end("Static membership test closed")
            member.start()
            member.await_line("REBALANCING -> RUNNING")
    joined = r"Successfully joined group with generation Generation\{generationId=(\d+)"
    generations = [re.findall(joined, member.log.read_text())[-BOUNCES * THREADS :] for member in members]
    assert list(map(len, generations)) == [BOUNCES * THREADS] * len(members)
    assert len({generation for member in generations for generation in member}) == 1, generations
    system.feed("inputTopic", members, "PROCESSED")
    for member in members:
        member.end("Static membership test closed")


# StreamsBrokerDownResilienceTest (streams_broker_down_resilience_test.py)

SOURCE, SINK = "streamsResilienceSource", "streamsResilienceSink"
DISCOVERED = "Discovered group coordinator"
ENDED = "Complete shutdown of streams resilience test app now"


class Resilience:
    """Three programs that copy records, and the records that must be in the sink."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.broker = system.broker
        system.create(**{SOURCE: 3, SINK: 1})
        self._values: list[bytes] = []

    def run(self, *names: str) -> list[Program]:
        words = ",".join((*SETTINGS, f"application.id={RESILIENCE}", LEGACY_ASSIGNOR))
        return [self._system.stream(name, RESILIENCE, words, auto__offset__reset="earliest") for name in names]

    def go_down(self, programs: list[Program]) -> None:
        """Stops the broker for longer than the programs' timeouts."""
        self.broker.stop()
        time.sleep(DOWN_S)
        for program in programs:
            assert program.is_running, program.tail()

    def come_up(self, programs: list[Program]) -> None:
        """Starts the broker, and waits until the programs find their coordinator."""
        before = [program.count(DISCOVERED) for program in programs]
        self.broker.start()
        for program, number in zip(programs, before, strict=True):
            program.await_line(DISCOVERED, number + 1)

    def copy(self, programs: list[Program], *, may_repeat: bool = False) -> None:
        """Writes records, and waits until each program has copied some and all are in the sink."""
        self._values += self._system.feed(SOURCE, programs, r"processed \d+ messages", keys=50)
        expected = sorted(self._values)

        def is_all(found: list[tuple[bytes, bytes]]) -> bool:
            values = {value for _, value in found} if may_repeat else [value for _, value in found]
            return sorted(values) == expected

        self._system.await_values(SINK, is_all)


@pytest.fixture
def resilience(system: System) -> Resilience:
    return Resilience(system)


def test_a_program_copies_on_after_its_broker_was_down_for_long(resilience: Resilience) -> None:
    programs = resilience.run("one")
    resilience.copy(programs)
    resilience.go_down(programs)
    resilience.come_up(programs)
    resilience.copy(programs)


def test_programs_that_start_while_the_broker_is_down_share_its_records(resilience: Resilience) -> None:
    resilience.broker.stop()
    programs = resilience.run("one", "two", "three")
    for program in programs:
        program.await_line("Node may not be available", 10)
    resilience.come_up(programs)
    resilience.copy(programs)


def test_programs_end_while_the_broker_is_down(resilience: Resilience) -> None:
    programs = resilience.run("one", "two", "three")
    programs[2].await_line("State transition from REBALANCING to RUNNING")
    resilience.copy(programs)
    resilience.broker.stop()
    for program in programs[:2]:
        program.end(ENDED)
    resilience.come_up(programs[2:])
    resilience.copy(programs[2:], may_repeat=True)


def test_programs_that_are_killed_while_the_broker_is_down_continue(resilience: Resilience) -> None:
    programs = resilience.run("one", "two", "three")
    programs[2].await_line("State transition from REBALANCING to RUNNING")
    resilience.copy(programs)
    resilience.broker.stop()
    for program in programs:
        program.restart_killed()
    resilience.come_up(programs)
    resilience.copy(programs, may_repeat=True)


# StreamsOptimizedTest (streams_optimized_test.py)


def reset(system: System, application: str) -> None:
    """Forgets the offsets of an application that has ended, and deletes its internal topics."""
    tool, *words = {
        "classic": ("kafka-streams-application-reset", "--force", "--input-topics", "inputTopic", "--application-id"),
        "streams": ("kafka-streams-groups", "--delete", "--delete-all-internal-topics", "--group"),
    }[system.protocol]
    jvm.tool(tool, "--bootstrap-server", system.broker.bootstrap, *words, application)


def test_an_application_is_reset_and_starts_with_an_optimized_topology(system: System) -> None:
    system.create(inputTopic=6, aggregationTopic=6, reduceTopic=6, joinTopic=6)

    def run(optimization: str, repartition_topics: int) -> list[Program]:
        settings = {
            "topology__optimization": optimization,
            "input__topic": "inputTopic",
            "aggregation__topic": "aggregationTopic",
            "reduce__topic": "reduceTopic",
            "join__topic": "joinTopic",
            "auto__offset__reset": "earliest",
        }
        names = (f"{optimization}-{number}" for number in range(3))
        programs = [system.stream(name, "StreamsOptimizedTest", **settings) for name in names]
        for program in programs:
            program.await_line(f"REBALANCING -> RUNNING with REPARTITION TOPIC COUNT={repartition_topics}")
        return programs

    def end(programs: list[Program]) -> None:
        for program in programs:
            program.end("OPTIMIZE_TEST Streams Stopped")

    programs = run("none", 4)
    system.feed("inputTopic", programs, "AGGREGATED|REDUCED|JOINED")
    end(programs)
    reset(system, "StreamsOptimizedTest")
    programs = run("all", 1)
    for operation in ("AGGREGATED", "REDUCED", "JOINED"):
        system.feed("inputTopic", programs, operation)
    end(programs)


# StreamsNamedRepartitionTest (streams_named_repartition_topic_test.py)


def test_operations_are_added_before_a_named_repartition_topic(system: System) -> None:
    system.create(inputTopic=6, aggregationTopic=6)

    def run(name: str, *, added: bool) -> Program:
        settings = {"input__topic": "inputTopic", "aggregation__topic": "aggregationTopic"}
        additions = {"add__operations": str(added).lower()}
        program = system.stream(name, "StreamsNamedRepartitionTest", **settings, **additions)
        program.await_line("UPDATED Topology" if added else "REBALANCING -> RUNNING")
        return program

    names = ("one", "two", "three")
    programs = [run(name, added=False) for name in names]
    system.feed("inputTopic", programs, "AGGREGATED")
    for index, name in enumerate(names):
        programs[index].end("NAMED_REPARTITION_TEST Streams Stopped")
        programs[index] = run(name, added=True)
    system.feed("inputTopic", programs, "AGGREGATED")
    for program in programs:
        program.end("NAMED_REPARTITION_TEST Streams Stopped")


# BrokerCompatibilityTest (streams_broker_compatibility_test.py)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_program_finds_its_own_count(system: System, guarantee: str) -> None:
    system.create(brokerCompatibilitySourceTopic=1, brokerCompatibilitySinkTopic=1)
    program = system.stream("compatibility", "BrokerCompatibilityTest", guarantee)
    assert program.wait(WITHIN_S) == 0
    assert "close Kafka Streams" in program.printed, program.tail()
    assert not re.search("FATAL|Non-Streams exception", program.printed), program.tail()
