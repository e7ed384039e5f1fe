"""Tests transactions with Apache Kafka's own tools, and on Apache Kafka's own broker."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TypeVar

import pytest

from coordinator.transaction.state import BY_NUMBER
from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from tests.broker import transacting
from tests.broker.transacting import ID, NOT_YET, TOPIC, TransactionalClient, broker_on
from tests.interop import jvm
from tests.interop.brokers import ApacheKafka, Broker, Odradek
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.transactions import COMMITTED, TRANSACTIONAL, UNCOMMITTED, Transaction
from tests.wire import WireClient

R = TypeVar("R")
NONE = ErrorCode.NONE
IDS = ("empty", "ongoing", "committed", "aborted", "committing", "aborting")
FEW_PARTITIONS = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}


class OverTheWire:
    """A connection over a socket."""

    def __init__(self, broker: Broker) -> None:
        self._wire = WireClient(broker.bootstrap)

    async def ask(self, request: object, version: int, response: type[R]) -> R:
        return self._wire.ask(request, response, version)


def client_of(broker: Broker) -> TransactionalClient:
    return TransactionalClient(OverTheWire(broker))


def transactions(broker: Broker, *arguments: str) -> list[list[str]]:
    """Returns the rows of a table of kafka-transactions, without its header."""
    output = jvm.tool("kafka-transactions", "--bootstrap-server", broker.bootstrap, *arguments)
    return [[cell.strip() for cell in line.split("\t")] for line in output.splitlines()[1:]]


async def open_transaction(broker: Broker) -> Producer:
    """Opens a transaction of ID with one record in partition 0."""
    client = client_of(broker)
    await client.find(ID, 1)
    producer = await client.producer()
    assert await client.write(producer, "a") is NONE
    return producer


@pytest.fixture
def properties() -> dict[str, str]:
    """Disables verification, so that a transaction can hang, as before KIP-890."""
    return {**FEW_PARTITIONS, "transaction.partition.verification.enable": "false"}


def test_kafka_transactions_lists_and_describes(broker: Broker) -> None:
    Confluent().create(broker.bootstrap, TOPIC, partitions=2)
    producer = asyncio.run(open_transaction(broker))
    number = str(producer.producer_id)
    assert transactions(broker, "list") == [[ID, "1", number, "Ongoing", ""]]
    assert transactions(broker, "list", "--duration-filter", "3600000") == []
    assert transactions(broker, "list", "--transactional-id-pattern", "trans.*") == [[ID, "1", number, "Ongoing", ""]]
    assert transactions(broker, "list", "--transactional-id-pattern", "trans") == []
    (row,) = transactions(broker, "describe", "--transactional-id", ID)
    assert row[:6] == ["1", ID, number, "0", "Ongoing", "60000"]
    assert row[8] == f"{TOPIC}-0"
    (row,) = transactions(broker, "describe-producers", "--topic", TOPIC, "--partition", "0")
    assert (row[0], row[1], row[3], row[5]) == (number, "0", "0", "0")


def test_kafka_transactions_terminates_a_transaction(broker: Broker) -> None:
    Confluent().create(broker.bootstrap, TOPIC, partitions=2)
    asyncio.run(open_transaction(broker))
    jvm.tool(
        "kafka-transactions",
        "--bootstrap-server",
        broker.bootstrap,
        "forceTerminateTransaction",
        "--transactionalId",
        ID,
    )
    assert asyncio.run(client_of(broker).settled()) == "Empty"
    assert TRANSACTIONAL["confluent"].read(broker.bootstrap, TOPIC, COMMITTED) == []


def test_kafka_transactions_finds_and_aborts_a_hanging_transaction(broker: Broker) -> None:
    Confluent().create(broker.bootstrap, TOPIC, partitions=2)

    async def write_late() -> None:
        client = client_of(broker)
        await client.find(ID, 1)
        producer = await client.producer()
        assert await client.write(producer, "late", version=11) is NONE

    asyncio.run(write_late())
    find = ("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0")
    (row,) = transactions(broker, *find)
    assert (row[:2], row[5]) == ([TOPIC, "0"], "0")
    where = ("--topic", TOPIC, "--partition", "0", "--start-offset", "0")
    jvm.tool("kafka-transactions", "--bootstrap-server", broker.bootstrap, "abort", *where)
    assert transactions(broker, *find) == []
    TRANSACTIONAL["confluent"].transact(broker.bootstrap, TOPIC, "other", [Transaction(["b"], committed=True)])
    assert TRANSACTIONAL["confluent"].read(broker.bootstrap, TOPIC, COMMITTED) == ["b"]


def test_the_perf_test_commits_every_so_often(broker: Broker) -> None:
    Confluent().create(broker.bootstrap, TOPIC)
    load = ("--topic", TOPIC, "--num-records", "20000", "--record-size", "200", "--throughput", "20000")
    ends = ("--transactional-id", "perf", "--transaction-duration-ms", "50")
    output = jvm.tool("kafka-producer-perf-test", *load, *ends, "--bootstrap-server", broker.bootstrap)
    assert "20000 records sent" in output
    assert len(TRANSACTIONAL["confluent"].read(broker.bootstrap, TOPIC, COMMITTED)) == 20_000


def test_kafkas_own_copier_copies_exactly_once_though_it_aborts_at_random(shared_broker: Broker, topic: str) -> None:
    """The tool checks exactly this: a value that is missing in the copy, or is there twice."""
    copy = f"{topic}-copy"
    for name in (topic, copy):
        Confluent().create(shared_broker.bootstrap, name)
    values = [str(number) for number in range(2_000)]
    client = TRANSACTIONAL["confluent"]
    client.transact(shared_broker.bootstrap, topic, f"{topic}-writer", [Transaction(values, committed=True)])
    where = ("--input-topic", topic, "--input-partition", "0", "--output-topic", copy)
    who = ("--transactional-id", f"{topic}-copier", "--consumer-group", f"{topic}-copiers")
    how = ("--transaction-size", "50", "--enable-random-aborts", "--max-messages", str(len(values)))
    jvm.tool("transactional-message-copier", "--broker-list", shared_broker.bootstrap, *where, *who, *how)
    assert client.read(shared_broker.bootstrap, copy, COMMITTED) == values
    assert len(client.read(shared_broker.bootstrap, copy, UNCOMMITTED)) > len(values)


# Files


@pytest.mark.odradek_only
def test_kafka_dump_log_reads_the_transaction_log(broker: Broker) -> None:
    Confluent().create(broker.bootstrap, TOPIC)
    written = [Transaction(["a"], committed=True), Transaction(["b"], committed=False)]
    TRANSACTIONAL["java-4.3.1"].transact(broker.bootstrap, TOPIC, ID, written)
    asyncio.run(client_of(broker).settled())
    broker.stop()
    states = [state for log in sorted(broker.data.glob("__transaction_state-*")) for state in dumped(log)]
    assert states == [
        ("0", "Empty"),
        ("0", "Ongoing"),
        ("1", "PrepareCommit"),
        ("1", "CompleteCommit"),
        ("1", "Ongoing"),
        ("2", "PrepareAbort"),
        ("2", "CompleteAbort"),
    ]


def dumped(log: Path) -> list[tuple[str, str]]:
    """Returns (producer epoch, state) of each record of a partition, as kafka-dump-log decodes them."""
    file = str(log / f"{0:020}.log")
    output = jvm.tool("kafka-dump-log", "--transaction-log-decoder", "--files", file)
    transitions = re.findall(r'"producerEpoch":(\d+).*?"transactionStatus":(\d)', output)
    return [(epoch, BY_NUMBER[int(status)].text) for epoch, status in transitions]


# A data directory with transactions in every state


async def leave_in_every_state(data: Path) -> dict[str, Producer]:
    """Returns a data directory with one transaction in each state, and the producers that could continue."""
    producers: dict[str, Producer] = {}
    async with broker_on(data, **{key.replace(".", "_"): value for key, value in FEW_PARTITIONS.items()}) as broker:
        client = transacting.Transacting(broker)
        await client.start()
        for name in IDS:
            await client.find(name, 1)
            producers[name] = await client.producer(name)
        for name, partition in zip(IDS[1:], (0, 0, 0, 1, 1), strict=True):
            assert await client.write(producers[name], name, partition=partition, name=name) is NONE
        for name, committed in (("committed", True), ("aborted", False)):
            producers[name] = (await client.end(producers[name], committed=committed, name=name)).producer
            await client.settled(name)
        broker.server.broker.replicas.remove(TopicPartition(TOPIC, 1))  # no marker gets there
        for name, committed in (("committing", True), ("aborting", False)):
            producers[name] = (await client.end(producers[name], committed=committed, name=name)).producer
        states = [(await client.describe(name)).transaction_state for name in IDS]
        assert states == ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort", "PrepareCommit", "PrepareAbort"]
    return producers


async def states_of(client: TransactionalClient) -> list[str]:
    """Returns the states, once all transactions are loaded and all markers written."""
    for name in IDS:
        await client.find(name, 1)
        while (await client.describe(name)).error_code in NOT_YET:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return [await client.settled(name) for name in IDS]


@pytest.mark.odradek_only
def test_transactions_in_every_state_move_to_apache_kafka_and_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    producers = asyncio.run(leave_in_every_state(data))
    apache = ApacheKafka(data, FEW_PARTITIONS, formatted=True)
    apache.start()
    client = client_of(apache)
    states = asyncio.run(states_of(client))
    assert states == ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort", "CompleteCommit", "CompleteAbort"]
    assert asyncio.run(client.read(1)) == ["committing"]

    async def go_on() -> None:
        producers["ongoing"] = await client.ended_as("ongoing", producers["ongoing"])
        assert await client.read() == ["ongoing", "committed"]
        assert await client.write(producers["committed"], "left open", name="committed") is NONE

    asyncio.run(go_on())
    apache.stop()
    apache.forget()
    odradek = Odradek(data)
    odradek.start()
    client = client_of(odradek)

    async def end_what_is_open() -> None:
        states = await states_of(client)
        assert states == ["Empty", "CompleteCommit", "Ongoing", "CompleteAbort", "CompleteCommit", "CompleteAbort"]
        assert await client.read() == ["ongoing", "committed"]
        await client.ended_as("committed", producers["committed"])
        assert await client.read() == ["ongoing", "committed", "left open"]

    asyncio.run(end_what_is_open())
    odradek.stop()
    odradek.forget()
