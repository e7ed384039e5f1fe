"""Consumers with Kafka 0.8's high-level consumer, and their groups."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kazoo.client import KazooClient

from commands.errors import CommandError
from commands.zookeeper.assignors import STRATEGIES
from commands.zookeeper.rebalancing import GroupView, unsettled
from commands.zookeeper.znodes import OldGroup, read_group
from protocol.types import TopicPartition
from tests.interop.processes import Server
from tests.interop.zookeeper import SOON_S, old_program

SETTINGS = {
    "zookeeper.session.timeout.ms": "4000",
    "zookeeper.connection.timeout.ms": "60000",  # a start on a busy machine
    "auto.commit.interval.ms": "500",
    "auto.offset.reset": "smallest",
    "rebalance.backoff.ms": "500",
    "rebalance.max.retries": "200",
    "refresh.leader.backoff.ms": "200",
    "offsets.channel.backoff.ms": "200",
}
ZOOKEEPER = {"offsets.storage": "zookeeper"}
DUAL = {"offsets.storage": "kafka", "dual.commit.enabled": "true"}
KAFKA = {"offsets.storage": "kafka", "dual.commit.enabled": "false"}
"""The options with which a consumer stores its offsets in Kafka, according to Kafka's documentation."""

RECORD = re.compile(rb"^record (\S+) (\d+) (\d+) (\S+)\n", re.MULTILINE)


class Consumed(NamedTuple):
    """A record as a consumer printed it."""

    partition: TopicPartition
    offset: int
    value: str


class OldConsumer(Server):
    """A process with a consumer. After a restart it is another member of its group."""

    def __init__(
        self, folder: Path, connect: str, group: str, streams: Mapping[str, int], version: str = "0.8.2.2"
    ) -> None:
        """`streams` has the number of threads for each topic."""
        super().__init__(f"consumer {folder.name}", folder.with_suffix(".log"))
        self.group = group
        self._file = folder.with_suffix(".properties")
        self._settings = {**SETTINGS, "zookeeper.connect": connect, "group.id": group}
        self._streams = dict(streams)
        self._version = version
        self._starts = itertools.count(1)

    def start(self, settings: Mapping[str, str] = ZOOKEEPER) -> None:
        own = {"consumer.id": f"{self._file.stem}-{next(self._starts)}"}
        lines = {**self._settings, **own, **settings}.items()
        self._file.write_text("".join(f"{name}={value}\n" for name, value in lines))
        streams = [f"{topic}={count}" for topic, count in self._streams.items()]
        command = old_program(self._version, "OldConsumer.java", str(self._file), *streams)
        self.launch(command, r"^consuming$", SOON_S)

    def consumed(self) -> Iterator[Consumed]:
        """Returns all records that it has printed, in all of its processes."""
        for match in RECORD.finditer(self.log.read_bytes()):
            topic, partition, offset, value = (text.decode() for text in match.groups())
            yield Consumed(TopicPartition(topic, int(partition)), int(offset), value)


def settled(
    client: KazooClient, group: str, members: int, partitions: Mapping[str, int], strategy: str = "range"
) -> bool:
    """True if a group has this number of members, each of which owns its partitions according to Odradek's own
    rules."""
    ranges = {topic: range(count) for topic, count in partitions.items()}
    now = _read(client, group)
    if now is None or len(now.members) != members or len(now.owners) != sum(partitions.values()):
        return False
    return not unsettled(now.owners, GroupView(now.members, ranges, now.brokers), STRATEGIES[strategy])


def _read(client: KazooClient, group: str) -> OldGroup | None:
    try:
        return read_group(client, group)
    except CommandError:
        return None  # it is half written
