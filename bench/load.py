"""The parts of a load: declarations that bench.loads and bench.tools fill in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from pathlib import Path
from typing import NamedTuple

from bench import warmth
from bench.figures import ToolResult


class NeededApi(IntEnum):
    """The APIs that a load may need besides Produce, Fetch and Metadata, by Kafka's names and keys."""

    PRODUCE = 0
    FETCH = 1
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    SYNC_GROUP = 14
    CREATE_TOPICS = 19
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26
    INCREMENTAL_ALTER_CONFIGS = 44
    CONSUMER_GROUP_HEARTBEAT = 68
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79


class Payload(Enum):
    """The values of records."""

    RANDOM = "random letters, which no codec makes much smaller"
    LOG_LINES = "lines of an access log, which lz4 makes a third as large"


class Flow(Enum):
    """The floor's version of a load: the same bytes, without the protocol."""

    RECEIVE = "receive"
    SEND = "send"


class Method(Enum):
    """How a round of a load is measured."""

    TOOL = "run a tool to its end"
    IDLE = "hold connections and do nothing"
    START_UP = "start on an empty directory"


class ToolRun(NamedTuple):
    """One run of a tool."""

    bootstrap: str
    topic: str
    load: Load
    number: int
    """The number of the round, so that each round can have a group of its own."""
    work: Path
    """A folder for files."""


Parse = Callable[[str, ToolRun], ToolResult]
"""Parses a tool's output."""


class Tool(NamedTuple):
    """A program that others wrote, or a thin loop around such a client: its command line, and the parser of its
    output.
    """

    name: str
    command: Callable[[ToolRun], list[str]]
    parse: Parse
    before: Callable[[ToolRun], list[str]] | None = None
    """A command that runs first and is not measured."""


NO_TOOL = Tool("no tool", lambda job: [], lambda output, job: ToolResult(0, 0, 0.0))


def module(name: str, *arguments: str) -> list[str]:
    """Returns the command line of a module of the bench, in the same interpreter."""
    return [sys.executable, "-m", name, *arguments]


class Load(NamedTuple):
    """A row of the benchmark. Sizes are for one round; `size_bytes` counts values before compression."""

    name: str
    title: str
    tool: Tool = NO_TOOL
    records: int = 0
    record_bytes: int = 1_000
    payload: Payload = Payload.RANDOM
    partitions: int = 1
    client: tuple[str, ...] = ()
    """Properties of the client, `key=value`; all others have the client's defaults."""
    clients: int = 1
    rate: int = 0
    """Records per second that the tool sends; 0 is as fast as possible."""
    connections: int = 0
    """Idle connections that are held meanwhile."""
    filled_by: Load | None = None
    """The load that fills the topic before the measurement."""
    topic: tuple[str, ...] = ()
    """Configs of the topic, `key=value`."""
    one_topic: bool = False
    """True when all rounds write to the same topic, so that it ages with the broker."""
    cold: bool = False
    """True when the topic's pages are dropped from memory before each round."""
    needs: frozenset[NeededApi] = frozenset()
    flow: Flow | None = None
    chunk_bytes: int = 16_384
    """Bytes of a request to the floor: a batch for producers, a fetch for consumers."""
    method: Method = Method.TOOL
    rounds_at_least: int = 0
    warm_up_at_most: int = warmth.MOST_ROUNDS
    """Maximum number of warm-up rounds, if rounds take long."""
    only: str = ""
    """The only peer that is measured, if the load compares a peer with itself; empty for all peers."""
    figures: tuple[str, ...] = ("cpu_s_per_gb", "cpu_s_per_million", "mb_per_s", "rss_peak_mb", "private_mb")

    @property
    def size_bytes(self) -> int:
        return self.records * self.record_bytes

    @property
    def topic_configs(self) -> Mapping[str, str]:
        return dict(text.split("=", 1) for text in self.topic)

    @property
    def properties(self) -> Mapping[str, str]:
        return dict(text.split("=", 1) for text in self.client)
