"""Measures how long producers wait while the broker has other work: cleaning a compacted topic, or reading old data
from the disk.

Not a test: `python -m tests.interop.steadiness [SECONDS]` prints a line for each of: no other work, the cleaner, a
consumer of old data in memory, a consumer of old data on disk, and no other work again, all with one broker process.
Producers send records of 1 KB at a fixed rate, and each request is measured from the time when it was due. Both
consumers read at one rate, so that only the device differs.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.records.batch import iter_batches
from protocol.records.building import build
from protocol.records.record import Record
from tests.interop.brokers import Odradek
from tests.wire import WireClient, request_frame

PRODUCE_VERSION = 7
RATE = 400
"""Requests per second: far below the broker's maximum, because the test measures waiting times."""
RECORD = random.Random(1).randbytes(1000)
OLD_BATCHES, OLD_BATCH_BYTES = 600, 500_000
COMPACTED_ROUNDS, KEYS = 60, 20_000
READS = 100
"""Fetches per second, each of 1 MB."""
READ, FROM_MEMORY, FROM_DEVICE = "--read", "memory", "the device"


def produce_request(topic: str, records: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    topic_data = TopicProduceData(name=topic, partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic_data])


class Producer(threading.Thread):
    """Sends at a fixed rate for some seconds, and records the duration of each request."""

    def __init__(self, bootstrap: str, topic: str, seconds: float) -> None:
        super().__init__()
        self.waited_ms: list[float] = []
        self._connection = WireClient(bootstrap)
        records = bytes(build([Record(0, time.time_ns() // 1_000_000, b"k", RECORD)]))
        self._frame = request_frame(produce_request(topic, records), PRODUCE_VERSION)
        self._count = int(seconds * RATE)

    def run(self) -> None:
        began = time.perf_counter()
        for n in range(self._count):
            due = began + n / RATE
            if (left := due - time.perf_counter()) > 0:
                time.sleep(left)  # this is the load's rate
            self._connection.exchange(self._frame)
            self.waited_ms.append((time.perf_counter() - due) * 1000)
        self._connection.close()


def create_topic(bootstrap: str, name: str, **configs: str) -> None:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=settings)
    with closing(WireClient(bootstrap)) as client:
        answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse, 4)
        assert answer.topics[0].error_code == 0, answer


def send(bootstrap: str, topic: str, batches: Iterator[bytes]) -> None:
    with closing(WireClient(bootstrap)) as client:
        for records in batches:
            answer = client.ask(produce_request(topic, records), ProduceResponse, PRODUCE_VERSION)
            assert answer.responses[0].partition_responses[0].error_code == 0, answer


def old_data() -> Iterator[bytes]:
    dice = random.Random(2)
    for _ in range(OLD_BATCHES):
        yield bytes(build([Record(0, 0, None, dice.randbytes(OLD_BATCH_BYTES))]))


def keyed_data() -> Iterator[bytes]:
    now_ms = time.time_ns() // 1_000_000
    for n in range(COMPACTED_ROUNDS):
        for first in range(0, KEYS, 500):
            keys = range(first, first + 500)
            yield bytes(
                build([Record(0, now_ms, f"key-{key}".encode(), f"value {n} of {key}".encode()) for key in keys])
            )


def drop_from_memory(data: Path) -> None:
    for file in data.glob("old-0/*"):
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def read_old_data(bootstrap: str, data: Path, where_from: str) -> None:
    """Reads the old topic from its start, again and again; if requested, from the device each time."""
    offset = 0
    with closing(WireClient(bootstrap)) as client:
        due = time.perf_counter()
        while True:
            if not offset and where_from == FROM_DEVICE:
                drop_from_memory(data)
            due = max(due + 1 / READS, now := time.perf_counter())
            time.sleep(due - now)  # this is the load's rate
            requested = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
            topics = [FetchTopic(topic="old", partitions=[requested])]
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics, forgotten_topics_data=[])
            answer = client.ask(request, FetchResponse, 11)
            headers = [header for _, header in iter_batches(answer.responses[0].partitions[0].records or b"")]
            offset = headers[-1].next_offset if headers and headers[-1].next_offset < OLD_BATCHES else 0


@contextmanager
def reading_old_data(bootstrap: str, data: Path, where_from: str) -> Iterator[None]:
    """Runs the consumer in a separate process: a thread would take time from the measured producer."""
    command = [sys.executable, "-m", "tests.interop.steadiness", READ, bootstrap, str(data), where_from]
    reader = subprocess.Popen(command)
    yield
    reader.kill()
    reader.wait()


def measure(name: str, bootstrap: str, seconds: float) -> None:
    producer = Producer(bootstrap, "steady", seconds)
    producer.start()
    producer.join()
    waited = sorted(producer.waited_ms)

    def at(share: float) -> str:
        return f"{waited[min(int(len(waited) * share), len(waited) - 1)]:7.2f}"

    print(f"{name:28} p50 {at(0.5)}  p99 {at(0.99)}  p99.9 {at(0.999)}  max {waited[-1]:7.2f} ms", flush=True)


def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="steadiness-", dir=os.environ.get("STEADINESS_DIR")) as work:
        settings = {
            "log.cleaner.backoff.ms": "200",
            "log.segment.bytes": "8388608",
            "auto.create.topics.enable": "true",
        }
        broker = Odradek(Path(work) / "data", settings)
        broker.start()
        try:
            run(broker, seconds)
        finally:
            broker.stop()
            broker.forget()


def run(broker: Odradek, seconds: float) -> None:
    where = broker.bootstrap
    create_topic(where, "steady")
    create_topic(where, "old")
    create_topic(where, "compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    send(where, "old", old_data())
    measure("nothing else", where, seconds)
    keyed = threading.Thread(target=send, args=(where, "compacted", keyed_data()))
    keyed.start()
    keyed.join()
    measure("cleaner at work", where, seconds)
    for where_from in (FROM_MEMORY, FROM_DEVICE):
        with reading_old_data(where, broker.data, where_from):
            measure(f"reads from {where_from}", where, seconds)
    measure("nothing else, again", where, seconds)
    cleanings = broker.log.read_text().count("log cleaned")
    print(f"cleanings: {cleanings}")


if __name__ == "__main__":
    if sys.argv[1:2] == [READ]:
        read_old_data(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
