"""Tests jobs that can't continue: the error names topic, partition and offsets, and nothing is committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

from pipeline.cluster import Cluster
from pipeline.errors import CorruptBatch, LostRange, PipelineError, TopicChanged, Unreachable
from pipeline.load import LoadConfig, load
from pipeline.mirror import MirrorConfig, mirror
from pipeline.ranges import AcceptedLosses, RangeBounds
from pipeline.store import Store
from pipeline.stream import StreamConfig, stream
from pipeline.topics import PartitionName
from tests.interop.brokers import Broker
from tests.interop.conftest import make_broker
from tests.interop.processes import free_port
from tests.pipeline.spark.records import create, is_complete, produce, rows
from tests.pipeline.spark.test_mirror import recreate

Job = Callable[[SparkSession, str, str, str, AcceptedLosses], int]

IMPATIENT = {
    "kafkaConsumer.pollTimeoutMs": "10000",
    "kafka.request.timeout.ms": "9000",
    "kafka.default.api.timeout.ms": "10000",
}


def by_load(spark: SparkSession, bootstrap: str, topic: str, store: str, accepted: AcceptedLosses) -> int:
    return load(spark, LoadConfig(bootstrap, store, (topic,), accepted=accepted, options=IMPATIENT)).records


def by_stream(spark: SparkSession, bootstrap: str, topic: str, store: str, accepted: AcceptedLosses) -> int:
    return stream(spark, StreamConfig(bootstrap, store, (topic,), accepted=accepted, options=IMPATIENT))


class Sink:
    """A topic of ten loaded records, and the job that loads further records."""

    def __init__(self, spark: SparkSession, broker: Broker, topic: str, store: str, job: Job) -> None:
        self.spark, self.broker, self.topic, self.store, self.job = spark, broker, topic, store, job
        self.bootstrap = broker.bootstrap
        create(broker, topic, 1)
        produce(broker, topic, [b"x"] * 10)
        self.run()

    def run(self, **accepted: bool) -> int:
        return self.job(self.spark, self.bootstrap, self.topic, self.store, AcceptedLosses(**accepted))

    def refuses(self, error: type[PipelineError], message: str) -> None:
        """Checks that the run ends with this message, and that the store is unchanged."""
        with pytest.raises(error, match=message):
            self.run()
        assert len(list(Path(self.store, "_manifests").glob("*.json"))) == 1
        assert self.spark.read.parquet(self.store).count() == 10


@pytest.fixture(params=[by_load, by_stream])
def sink(request: pytest.FixtureRequest, spark: SparkSession, kafka: Broker, topic: str, store: str) -> Sink:
    return Sink(spark, kafka, topic, store, request.param)


def lose(broker: Broker, topic: str, first: int) -> None:
    """Makes the partition begin at this offset, as retention does."""
    gone = TopicPartition(topic, 0, first)
    admin = Cluster(broker.bootstrap).admin
    admin.delete_records([gone])[gone].result(30)


def corrupt(broker: Broker, topic: str, text: bytes) -> None:
    """Changes one bit of a record."""
    (log,) = broker.data.glob(f"{topic}-0/*.log")
    damaged = bytearray(log.read_bytes())
    damaged[damaged.index(text)] ^= 1
    with log.open("r+b") as file:
        file.write(damaged)


def test_a_lost_range(sink: Sink, topic: str) -> None:
    produce(sink.broker, topic, [b"y"] * 10)
    lose(sink.broker, topic, 15)
    sink.refuses(LostRange, rf"{topic}-0: offsets 10 to 14 are lost: .* The partition now begins with 15")
    assert sink.run(lost=True) == 5
    assert is_complete(sink.spark, sink.broker, topic, sink.store)


def test_a_topic_that_gained_partitions(sink: Sink, topic: str) -> None:
    Cluster(sink.broker.bootstrap).grow(topic, 2)
    produce(sink.broker, topic, [b"y"] * 3, partition=1)
    sink.refuses(TopicChanged, rf"{topic} has 2 partitions, 1 when loaded; new: {topic}-1 \(offsets 0 to 2\)")
    assert sink.run(new_partitions=True) == 3
    assert is_complete(sink.spark, sink.broker, topic, sink.store)


def test_a_topic_that_was_deleted_and_created_again(sink: Sink, topic: str) -> None:
    recreate(sink.broker, topic)
    sink.refuses(TopicChanged, rf"Loaded: {topic}-0 up to 9. The topic has: {topic}-0 0 to 4")


def test_a_former_life_of_a_topic_can_be_dropped(spark: SparkSession, kafka: Broker, topic: str, store: str) -> None:
    sink = Sink(spark, kafka, topic, store, by_load)
    recreate(kafka, topic)
    assert sink.run(recreated=True) == 5
    assert [row["value"] for row in rows(spark, store)] == [b"new"] * 5
    assert spark.read.parquet(store).count() == 5


def test_a_corrupt_batch(sink: Sink, topic: str) -> None:
    produce(sink.broker, topic, [b"a record that is to be corrupted"])
    produce(sink.broker, topic, [b"z"])
    corrupt(sink.broker, topic, b"to be corrupted")
    sink.refuses(CorruptBatch, rf"{topic}-0.*corrupt.*Requested: {topic}-0 offsets 10 to 11")


@pytest.mark.parametrize("job", [by_load, by_stream])
def test_no_broker(spark: SparkSession, odradek: Broker, topic: str, store: str, job: Job) -> None:
    sink = Sink(spark, odradek, topic, store, job)
    sink.bootstrap = f"127.0.0.1:{free_port()}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.cluster.REQUEST_TIMEOUT_S", 2)
        sink.refuses(Unreachable, rf"no broker answers at {sink.bootstrap}.* Loaded: {topic}-0 up to 9")


@pytest.mark.parametrize("name", ["odradek", "apache"])
def test_a_broker_that_ends_meanwhile(spark: SparkSession, topic: str, store: str, tmp_path: Path, name: str) -> None:
    broker = make_broker(name, tmp_path / "data")
    broker.start()
    create(broker, topic, 1)
    produce(broker, topic, [b"x"] * 10)
    config = LoadConfig(broker.bootstrap, store, (topic,), options=IMPATIENT)

    def at(stage: str) -> None:
        if stage == "planned":
            broker.kill9()

    try:
        with pytest.raises(Unreachable, match=rf"{broker.bootstrap} stopped answering at {topic}-0 offsets 0 to 9"):
            load(spark, config, at)
        assert not any(Path(store, "_manifests").glob("*"))
        broker.restart()
        assert load(spark, config).records == 10
    finally:
        broker.stop()
        broker.forget()


def test_a_mirror_of_lost_records(spark: SparkSession, kafka: Broker, other: Broker, topic: str) -> None:
    config = mirrored_once(spark, kafka, other, topic)
    lose(kafka, topic, 15)
    with pytest.raises(LostRange, match=rf"{topic}-0: offsets 10 to 14 are lost: retention deleted them before"):
        mirror(spark, config)


def test_a_mirror_of_a_corrupt_batch(spark: SparkSession, kafka: Broker, other: Broker, topic: str) -> None:
    config = mirrored_once(spark, kafka, other, topic)
    corrupt(kafka, topic, b"to be corrupted")
    with pytest.raises(CorruptBatch, match=rf"{topic}-0.*corrupt.*Requested: {topic}-0 offsets 10 to 19"):
        mirror(spark, config)
    assert Cluster(other.bootstrap).end_offsets([PartitionName(topic, 0)])[PartitionName(topic, 0)] == 11


def mirrored_once(spark: SparkSession, broker: Broker, other: Broker, topic: str) -> MirrorConfig:
    """Creates a topic with twenty records, of which the first ten are mirrored."""
    create(broker, topic, 1)
    produce(broker, topic, [b"x"] * 10)
    config = MirrorConfig(broker.bootstrap, other.bootstrap, (topic,), options=IMPATIENT)
    assert mirror(spark, config) == 10
    produce(broker, topic, [b"a record that is to be corrupted", *[b"y"] * 9])
    return config


def test_offsets_that_are_not_there_yet(spark: SparkSession, odradek: Broker, topic: str, store: str) -> None:
    Sink(spark, odradek, topic, store, by_load)
    beyond = RangeBounds(offsets={PartitionName(topic, 0): 99})
    with pytest.raises(
        PipelineError, match=rf"{topic}-0: offsets up to 98 are requested, but the partition ends with 9"
    ):
        load(spark, LoadConfig(odradek.bootstrap, store, (topic,), starting=RangeBounds(named=-2), ending=beyond))


def test_a_topic_that_is_not_there(spark: SparkSession, odradek: Broker, store: str) -> None:
    with pytest.raises(PipelineError, match="has no topic nowhere"):
        load(spark, LoadConfig(odradek.bootstrap, store, ("nowhere",)))


def test_two_runs_at_once(spark: SparkSession, odradek: Broker, topic: str, store: str) -> None:
    sink = Sink(spark, odradek, topic, store, by_load)
    with Store(store).writing():
        sink.refuses(PipelineError, "another run is writing to it")
