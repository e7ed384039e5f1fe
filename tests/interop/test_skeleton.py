"""Tests the minimum of a broker: old and new tools write, and all records exist after a kill and a restart."""

from __future__ import annotations

from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.clients.driver import Kind
from tests.interop.clients.kcat import Kcat


def test_kcat_and_a_jvm_producer_write_and_both_read_after_a_kill(broker: Broker) -> None:
    topic, kcat = "skeleton", Kcat()
    by_kcat = [f"kcat {number}".encode() for number in range(10)]
    by_jvm = [f"jvm {number}".encode() for number in range(10)]
    kcat.create(broker.bootstrap, topic)
    kcat.produce(broker.bootstrap, topic, by_kcat, Kind())
    lines = "".join(f"{value.decode()}\n" for value in by_jvm)
    jvm.tool("kafka-console-producer", "--bootstrap-server", broker.bootstrap, "--topic", topic, stdin=lines)

    broker.kill9()
    broker.start()

    assert kcat.consume(broker.bootstrap, topic, 0, 20) == [*by_kcat, *by_jvm]
    where = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest")
    read = jvm.tool("kafka-console-consumer", *where, "--max-messages", "20", "--timeout-ms", "30000")
    assert read.encode().splitlines() == [*by_kcat, *by_jvm]


def test_a_broker_that_is_asked_to_stop_ends_with_status_zero(broker: Broker) -> None:
    Kcat().produce(broker.bootstrap, "stopped", [b"one"], Kind())
    assert broker.stop() in (0, 143)  # a JVM reports the signal
    assert (broker.data / ".kafka_cleanshutdown").exists()
    broker.start()
    assert Kcat().consume(broker.bootstrap, "stopped", 0, 1) == [b"one"]
