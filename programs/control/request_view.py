"""The view of a request that faults and recordings use: its header, partitions, groups and transactions.

It depends on no single API, only on the names that Kafka's messages give to topics, partitions, groups and
transactional ids. So it works for every API, including future ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from broker.dispatch.api import Api
from broker.dispatch.broker import Broker
from broker.dispatch.dispatcher import FRONT_BYTES
from broker.dispatch.header import HEADER_BYTES, skip_tags
from broker.request.context import ClientConnection
from protocol.api_key import ApiKey
from protocol.codec import MALFORMED, decode
from protocol.errors import ProtocolError
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.primitives import AS_JAVA, read_uvarint
from protocol.schema import fields_of
from protocol.types import NO_UUID

UUID_SIZE_BYTES: Final = 16
TOPIC_NAMES: Final = ("name", "topic", "topic_name")
PARTITION_LISTS: Final = ("partitions", "partition_data", "partition_indexes")
PARTITION_NUMBERS: Final = ("index", "partition", "partition_index")
TOPIC_LISTS: Final = ("topics", "topic_data", "topic_names", "v3_and_below_topics")
GROUP_LISTS: Final = ("groups", "groups_names", "group_ids")
TRANSACTIONAL_IDS: Final = ("transactional_id", "v3_and_below_transactional_id")
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""The key types of FindCoordinator."""


class SubjectPartition(NamedTuple):
    """A partition that a request names, or a topic as a whole."""

    topic: str
    partition: int | None


class Header(NamedTuple):
    """A request's header."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None


class Subjects:
    """The partitions, groups and transactions that a request names."""

    def __init__(self) -> None:
        self.places: list[SubjectPartition] = []
        self.groups: list[str] = []
        self.transactional_ids: list[str] = []
        self.has_every_topic = False
        """True if the request asks for the metadata of all topics, and names none."""


class RequestView:
    """One request, with a copy of its bytes, because an append changes records in place."""

    def __init__(self, broker: Broker, connection: ClientConnection, frame: memoryview) -> None:
        """Raises ProtocolError, or one of MALFORMED, for a frame without a whole header."""
        self.connection = connection
        self.frame = memoryview(bytearray(frame))
        key = int.from_bytes(self.frame[:2], signed=True)
        self.api: Api | None = broker.apis.find(key)
        self.header, self.body_at = read_header(self.frame, self.api)
        self.request: object | None = None
        """The message; None if its API or version is unsupported, or if it is malformed."""
        if self.api is not None and self.header.version in self.api.versions:
            try:
                self.request, _ = decode(self.api.request, self.header.version, self.frame, self.body_at)
            except (ProtocolError, *MALFORMED):
                pass  # the dispatcher rejects it
        self.subjects = Subjects()
        collect(broker, self.request, self.subjects)
        self.subjects.has_every_topic = is_about_every_topic(self.request, self.header.version)
        if key == ApiKey.FETCH:
            self.subjects.places += session_places(broker, self.request)

    @property
    def name(self) -> str:
        """Kafka's name of its API."""
        return name_of_api(self.header.key)

    @property
    def response_has_tags(self) -> bool:
        """True if the response's header has tags after the correlation id."""
        return (
            self.api is not None
            and self.header.key != ApiKey.API_VERSIONS
            and self.header.version in self.api.key.flexible
        )


def read_header(frame: memoryview, api: Api | None) -> tuple[Header, int]:
    """Returns the header, and the position of the body."""
    if len(frame) < HEADER_BYTES:
        raise ProtocolError(f"a request has a header of {HEADER_BYTES} bytes at least", offset=0)
    front = bytes(frame[:FRONT_BYTES])
    key, version, correlation_id, length = (
        int.from_bytes(front[start:end], signed=True) for start, end in ((0, 2), (2, 4), (4, 8), (8, 10))
    )
    position, client_id = HEADER_BYTES, None
    if length >= 0:
        position += length
        client_id = str(bytes(frame[HEADER_BYTES:position]), "utf-8", AS_JAVA)
    if api is not None and version in api.key.flexible:
        position = skip_tags(frame, position)
    return Header(key, version, correlation_id, client_id), position


def name_of_api(key: int) -> str:
    """Returns Kafka's name of an API, such as ListOffsets."""
    if key not in ApiKey._value2member_map_:
        return str(key)
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))


def collect(broker: Broker, message: object, subjects: Subjects) -> None:
    """Adds the subjects of a message and of the structs in it."""
    if message is None or not hasattr(message, "__wire__"):
        return
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.name in TOPIC_LISTS:
            for topic in value or ():
                subjects.places += places_of(broker, topic)
        elif field.name in GROUP_LISTS:
            subjects.groups += [group for group in value or () if isinstance(group, str)]
        elif field.name == "group_id" and value:
            subjects.groups.append(value)
        elif field.name in TRANSACTIONAL_IDS and value:
            subjects.transactional_ids.append(value)
        elif field.name == "transactional_ids":
            subjects.transactional_ids += value or ()
        if field.name not in TOPIC_LISTS and field.kind.items is not None and field.kind.items.struct is not None:
            for item in value or ():
                collect(broker, item, subjects)
    collect_keys(message, subjects)


def collect_keys(message: object, subjects: Subjects) -> None:
    """Adds the keys of FindCoordinator."""
    keys = [key for key in (getattr(message, "key", ""), *getattr(message, "coordinator_keys", ())) if key]
    key_type = getattr(message, "key_type", None)
    if key_type == GROUP_KEY:
        subjects.groups += keys
    elif key_type == TRANSACTION_KEY:
        subjects.transactional_ids += keys


def places_of(broker: Broker, topic: object) -> Iterator[SubjectPartition]:
    """Yields the partitions of an entry in a list of topics; the topic alone if it names none."""
    name = topic_name(broker, topic)
    if name is None:
        return
    for field in PARTITION_LISTS:
        if hasattr(topic, field):
            for partition in getattr(topic, field) or ():
                yield SubjectPartition(name, partition_number(partition))
            return
    yield SubjectPartition(name, None)


def topic_name(broker: Broker, topic: object) -> str | None:
    """Returns the name of a topic, from its name or id; None if it doesn't exist."""
    if isinstance(topic, str):
        return topic
    for field in TOPIC_NAMES:
        if name := getattr(topic, field, None):
            return str(name)
    topic_id = getattr(topic, "topic_id", NO_UUID)
    return None if topic_id == NO_UUID else broker.replicas.name_of(topic_id)


def partition_number(partition: object) -> int:
    """Returns the number of a partition in a list of numbers, or of structs."""
    if isinstance(partition, int):
        return partition
    return int(next(getattr(partition, field) for field in PARTITION_NUMBERS if hasattr(partition, field)))


def is_about_every_topic(request: object, version: int) -> bool:
    """True if the request asks for the metadata of all topics."""
    if isinstance(request, MetadataRequest):
        return request.topics is None or (version == 0 and not request.topics)
    return isinstance(request, DescribeTopicPartitionsRequest) and not request.topics


def session_places(broker: Broker, request: object) -> Iterator[SubjectPartition]:
    """Yields the partitions of the fetch session that a request continues, in addition to those that it names."""
    session = broker.fetches.sessions.sessions.get(getattr(request, "session_id", 0))
    if session is None:
        return
    for key, index in session.partitions:
        if len(key) == UUID_SIZE_BYTES and session.uses_topic_ids:
            name = broker.replicas.name_of(key)
        else:
            _, start = read_uvarint(key, 0)
            name = key[start:].decode()
        if name is not None:
            yield SubjectPartition(name, index)
