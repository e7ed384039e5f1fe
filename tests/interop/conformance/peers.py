"""A client of one broker that sends frames, and stores the answers in a form in which two brokers' answers can be
compared."""

from __future__ import annotations

import itertools
import re
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersion
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.schema import Kind, fields_of, identity
from protocol.types import NO_UUID, uuid_to_text
from tests.interop.conformance.records import describe_records
from tests.interop.conformance.unordered import UNORDERED
from tests.wire import WireClient, decode_response, request_frame

R = TypeVar("R")

ANSWER_TIMEOUT_S = 60
"""Timeout of an answer. Apache Kafka doesn't answer a request whose handler fails in some ways; no script has such a
request."""

POLL_S = 0.005
SILENCE_S = 3
"""Time without a close after which a connection counts as kept open."""

FIRST_SERVED = {
    ApiKey.PRODUCE: 3,
    ApiKey.FETCH: 4,
    ApiKey.LIST_OFFSETS: 1,
    ApiKey.OFFSET_COMMIT: 2,
    ApiKey.OFFSET_FETCH: 1,
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKey.DESCRIBE_CONFIGS: 1,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
}
"""The first versions that Apache Kafka 4 serves (KIP-896); earlier ones are compared with 3.9. It advertises Produce
from 0 because of librdkafka (KAFKA-18659), but closes the connection."""

NEAR_MS = 7 * 86_400_000
"""A time within a week of now comes from a clock, and differs each time; the scripts' own timestamps are years old."""

METADATA_VERSION = 12
CREATE_TOPICS_VERSION, LIST_OFFSETS_VERSION, FIND_COORDINATOR_VERSION = 7, 7, 3


class Exchange(NamedTuple):
    """A request and its result; `answer` is None if the broker closed the connection."""

    request: object
    version: int
    answer: object

    @property
    def title(self) -> str:
        return f"{type(self.request).__name__} v{self.version}"


class Peer:
    """One broker under test. Answers to `ask` are compared; answers to `quietly` are not."""

    def __init__(self, name: str, bootstrap: str, data: Path) -> None:
        self.name = name
        self.data = data
        self.host, port = bootstrap.rsplit(":", 1)
        self.port = int(port)
        self.trace: list[Exchange] = []
        self.names: dict[bytes, str] = {}
        self.producer_ids: list[int] = []
        self.random_ids: list[str] = []
        self.patience_s: float = ANSWER_TIMEOUT_S
        self._line: WireClient | None = None
        self._fences = itertools.count()

    def ask(self, request: object, version: int, response: type[R]) -> R:
        """Returns the answer, which must arrive."""
        answer = self.try_ask(request, version)
        assert isinstance(answer, response), f"{self.name} closed the connection over {request}"
        return answer

    def try_ask(self, request: object, version: int) -> object | None:
        """Returns the answer; None if the broker closed the connection instead."""
        answer = self.quietly(request, version)
        self.note(request, version, answer)
        return answer

    def note(self, request: object, version: int, answer: object | None) -> None:
        """Records an answer for the comparison."""
        shown = "the connection is closed" if answer is None else Plain(self).struct(answer)
        self.trace.append(Exchange(request, version, shown))

    def quietly(self, request: object, version: int) -> object | None:
        frame = self.exchange(request_frame(request, version))
        return None if frame is None else decode_response(frame, response_class(request), version)

    def send_only(self, request: object, version: int) -> None:
        self.send(request_frame(request, version))

    def try_exchange(self, frame: bytes, request: object, version: int) -> None:
        """Returns the answer to arbitrary bytes, decoded like the answer to `request`."""
        answered = self.exchange(frame)
        answer = None if answered is None else decode_response(answered, response_class(request), version)
        self.note(request, version, answer)

    def note_fate(self, frame: bytes) -> None:
        """Records whether a frame is answered, or closes the connection."""
        answered = self.exchange(struct.pack(">i", len(frame)) + frame) is not None
        self.trace.append(Exchange("frame", 0, {"answered": answered}))

    def note_end(self) -> None:
        """Records whether the broker closes the connection within a moment."""
        plug = self.line().socket
        plug.settimeout(SILENCE_S)
        try:
            end: object = plug.recv(1) == b""
        except ConnectionError:
            end = True
        except TimeoutError:
            end = False
        self.trace.append(Exchange("end of connection", 0, {"ended": end}))
        self.close()

    def send(self, frame: bytes) -> None:
        """Sends a frame that gets no answer."""
        self.line().socket.sendall(frame)

    def exchange(self, frame: bytes) -> bytes | None:
        try:
            return self.line().exchange(frame)
        except ConnectionError:
            self.close()
            return None
        except TimeoutError:
            self.close()
            raise

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = None

    def line(self) -> WireClient:
        """Returns the connection, opened again if it was closed."""
        if self._line is None:
            self._line = WireClient(f"{self.host}:{self.port}", self.patience_s)
        return self._line

    def create(self, name: str, partitions: int = 1, /, **configs: str) -> bytes:
        """Creates a topic, with configs by attribute names (`max_message_bytes="100"`); returns its id. Not
        compared."""
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        response = self.quietly(request, CREATE_TOPICS_VERSION)
        assert isinstance(response, CreateTopicsResponse)
        assert response.topics[0].error_code == 0, response
        self.names[response.topics[0].topic_id] = name
        self.wait_for_leaders(name, range(partitions))
        return response.topics[0].topic_id

    def learn(self, name: str) -> None:
        """Returns the id of a topic that was created implicitly."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name, topic_id=NO_UUID)])
        answer = self.quietly(request, METADATA_VERSION)
        assert isinstance(answer, MetadataResponse)
        self.names[answer.topics[0].topic_id] = name

    def wait_for_leaders(self, name: str, partitions: Iterable[int]) -> None:
        """Waits for the leaders, because Apache Kafka answers CreateTopics before its broker knows the topic."""
        requested = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in partitions]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=requested)])
        self.wait_for(
            request,
            LIST_OFFSETS_VERSION,
            lambda answer: not any(partition.error_code for partition in answer.topics[0].partitions),
        )

    def wait_for_metadata(self) -> None:
        """Waits until Apache Kafka's broker knows earlier decisions: then it knows a topic that is created now."""
        if self.name.startswith("apache"):
            self.create(f"fence-{next(self._fences)}")

    def wait_until_gone(self, name: str) -> None:
        """Waits until a deleted topic has disappeared from the metadata and, as far as clients can see, from the
        logs."""
        requested = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[requested])])
        self.wait_for(
            request,
            LIST_OFFSETS_VERSION,
            lambda answer: answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )

    def wait_for(self, request: object, version: int, is_there: Callable[[Any], bool]) -> Any:
        """Repeats a request, without comparing, until the answer has a property; returns that answer."""
        return self.wait_until(lambda: self.quietly(request, version), is_there, request)

    def wait_until(self, ask: Callable[[], Any], is_there: Callable[[Any], bool], what: object) -> Any:
        """Does the same with a request that may change each time."""
        deadline = time.monotonic() + self.patience_s
        while not is_there(answer := ask()):
            assert time.monotonic() < deadline, f"{self.name}: {what} is not done after {self.patience_s} s"
            time.sleep(POLL_S)  # a broker tells nobody that it is done: it can only be asked again
        return answer

    def find_coordinator(self, key: str, kind: int) -> None:
        """Waits until there is a coordinator; the first request creates its topic. Not compared."""
        request = FindCoordinatorRequest(key=key, key_type=kind)
        self.wait_for(request, FIND_COORDINATOR_VERSION, lambda answer: not answer.error_code)


RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The random ends of member ids."""

COUNTED = {
    "ResponsePartitionData": ("high_watermark", "leader_epoch"),
    "ReplicaState": ("log_end_offset",),
    "Listener": ("port",),
}
"""The fields of DescribeQuorum about a log, which differ between any two brokers."""


class Plain:
    """Converts a decoded answer to dicts, lists and words, without the parts that always differ between two brokers."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.now_ms = time.time_ns() // 1_000_000

    def struct(self, value: object) -> dict[str, object]:
        plain = {
            field.name: self.field(field.name, field.kind, getattr(value, field.name))
            for field in fields_of(type(value))
        }
        for name, items in plain.items():
            if f"{type(value).__name__}.{name}" in UNORDERED and isinstance(items, list):
                items.sort(key=str)
        for name in COUNTED.get(type(value).__name__, ()):
            plain[name] = "some" if isinstance(plain[name], int) and getattr(value, name) > 0 else plain[name]
        return plain

    def field(self, name: str, kind: Kind, value: Any) -> object:
        if value is None:
            return None
        if kind.name == "array" and kind.items is not None:
            return [self.field(name, kind.items, item) for item in value]
        if kind.name == "struct":
            return self.struct(value)
        if kind.name == "uuid":
            return self.uuid(value)
        if kind.name == "records":
            return [self.times(batch) for batch in describe_records(value)]
        if kind.name == "string":
            return self.text(name, value)
        if kind.name == "bytes":
            return bytes(value)
        return self.number(name, value)

    def uuid(self, value: bytes) -> str:
        return "none" if value == NO_UUID else self.peer.names.get(value, "some id")

    def text(self, name: str, value: str) -> str:
        if name == "cluster_id" and value:
            return "the cluster"
        if name == "documentation":
            return "in the project's own words"
        for topic_id, topic in self.peer.names.items():
            value = value.replace(uuid_to_text(topic_id), f"id of {topic}")
        value = value.replace(str(self.peer.data), "DATA").replace(f":{self.peer.port}", ":PORT")
        value = RANDOM_ID.sub(lambda match: f"random {self.random(match[0])}", value)
        return self.times(value)

    def times(self, text: str) -> str:
        text = re.sub(r"-92\d{17}", "LONG AGO", text)  # the clock less the longest time there is
        return re.sub(r"\b\d{13}\b", lambda match: "NOW" if self.is_near(int(match[0])) else match[0], text)

    def is_near(self, value: int) -> bool:
        return abs(value - self.now_ms) < NEAR_MS

    def number(self, name: str, value: Any) -> object:
        if name == "throttle_time_ms":
            return 0
        if name == "port" and value == self.peer.port:
            return "PORT"
        if name == "session_id" and value:
            return "a session"
        if name in ("total_bytes", "usable_bytes", "finalized_features_epoch") and value > 0:
            return "some"
        if name == "producer_id" and value >= 0:
            return f"producer {self.producer(value)}"
        return "NOW" if isinstance(value, int) and self.is_near(value) else value

    def random(self, random_id: str) -> int:
        if random_id not in self.peer.random_ids:
            self.peer.random_ids.append(random_id)
        return self.peer.random_ids.index(random_id)

    def producer(self, producer_id: int) -> int:
        if producer_id not in self.peer.producer_ids:
            self.peer.producer_ids.append(producer_id)
        return self.peer.producer_ids.index(producer_id)


def response_class(request: object) -> type:
    name = type(request).__name__.removesuffix("Request") + "Response"
    response: type = getattr(sys.modules[type(request).__module__], name)
    return response


class Pair(NamedTuple):
    """Odradek and Apache Kafka, and the versions of each API to compare."""

    odradek: Peer
    apache: Peer
    served: dict[int, range]

    def versions(self, request: type) -> Iterator[int]:
        """Yields the versions that both serve."""
        ours = identity(request).versions
        return (version for version in self.served[identity(request).key] if ours.first <= version <= ours.last)


def compared(served: Iterable[ApiVersion], before_4: bool) -> dict[int, range]:
    """Returns the versions that Apache Kafka serves, or only those that Apache Kafka 4 no longer serves."""
    ranges = {}
    for api in served:
        key = api.api_key
        first = FIRST_SERVED.get(ApiKey(key), api.min_version)
        ranges[key] = range(api.min_version, first) if before_4 else range(first, api.max_version + 1)
    return ranges
