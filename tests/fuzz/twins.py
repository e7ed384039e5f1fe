"""Two brokers that get the same requests, which are drawn for both from worlds of the same shape."""

from __future__ import annotations

import random
import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from protocol.errors import ProtocolError
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_groups import ListedGroup
from protocol.messages.list_transactions import ListTransactionsResponse
from protocol.messages.produce import ProduceRequest
from protocol.schema import fields_of, identity
from tests.fuzz.drawing import Draw
from tests.fuzz.feedback import learn
from tests.fuzz.frames import frame, sized
from tests.fuzz.limits import tame
from tests.fuzz.silence import is_silent_over
from tests.fuzz.vocabulary import INTERNAL, Vocabulary
from tests.fuzz.world import FuzzWorld
from tests.interop.conformance.peers import Peer, Plain, response_class
from tests.wire import decode_response

ANSWER_S: Final = 30.0
SILENCE_S: Final = 2.0
"""Timeout of an answer that Apache Kafka may never send."""

NO_ANSWER: Final = "no answer"
BUSY: Final = frozenset({14, 15, 16, 51})
"""Errors of a coordinator that is loading, or has markers to write: it has not examined the request yet."""

PATIENT_TRIES, POLL_S = 10, 0.03
CLOSED: Final = "the connection is closed"
UNREADABLE: Final = "an answer that cannot be read"
ALL_PARTITIONS: Final = 2000
"""The maximum number of partitions in an answer."""

TOPIC_RESOURCE, SET = 2, 0
OF_AN_EPISODE: Final = re.compile(r"^(d\d+)-")
GIVES_IDS: Final = frozenset({"InitProducerIdRequest", "EndTxnRequest"})
PRODUCER_OF_A_BATCH: Final = re.compile(r"'producer_id': (\d+)")
MADE_UP_ID: Final = re.compile(r"^[A-Za-z0-9_-]{22}$")
"""The form of a member id that a broker draws for a member without one."""

NAMES: Final = ("name", "topic", "topic_name", "group_id", "transactional_id", "group", "resource_name", "user")
ORDER: Final = (*NAMES, "topic_id", "partition_index", "partition", "index", "producer_id", "member_id", "error_code")

CHANGES_METADATA: Final = frozenset({
    "CreateTopicsRequest", "DeleteTopicsRequest", "CreatePartitionsRequest", "AlterConfigsRequest", "MetadataRequest",
    "IncrementalAlterConfigsRequest", "UpdateFeaturesRequest", "AlterPartitionReassignmentsRequest",
    "InitializeShareGroupStateRequest", "AlterShareGroupOffsetsRequest", "DeleteShareGroupOffsetsRequest",
    "StreamsGroupHeartbeatRequest",
    "AlterUserScramCredentialsRequest", "AlterClientQuotasRequest",
})  # fmt: skip
READS: Final = frozenset({
    "ListOffsetsRequest", "DescribeGroupsRequest", "ListGroupsRequest", "OffsetFetchRequest", "FindCoordinatorRequest",
    "ApiVersionsRequest", "DescribeAclsRequest", "DescribeConfigsRequest", "DescribeLogDirsRequest",
    "ConsumerGroupDescribeRequest", "StreamsGroupDescribeRequest",
    "OffsetForLeaderEpochRequest", "DescribeClusterRequest", "DescribeProducersRequest", "DescribeTransactionsRequest",
    "ListTransactionsRequest", "ListPartitionReassignmentsRequest", "DescribeQuorumRequest",
    "ListConfigResourcesRequest",
    "DescribeTopicPartitionsRequest", "ShareGroupDescribeRequest", "DescribeShareGroupOffsetsRequest",
    "ReadShareGroupStateSummaryRequest", "DescribeUserScramCredentialsRequest", "DescribeClientQuotasRequest",
})  # fmt: skip


REBALANCES: Final = frozenset({"JoinGroupRequest", "SyncGroupRequest", "LeaveGroupRequest"})
REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance")
SETTLE_S: Final = 3.0
"""Longer than a rebalance of the world's own members takes."""

ASIDE: Final = frozenset({
    "DescribeAclsRequest", "CreateAclsRequest", "DeleteAclsRequest", "DescribeShareGroupOffsetsRequest",
})  # fmt: skip
"""APIs with requests over which Apache Kafka closes the connection, or which it never answers. None changes anything:
without an authorizer there are no ACLs."""

DOUBLED: Final = 0.1
"""Share of the requests that may name a partition twice. Apache Kafka loses the first records of such a partition, and
such a world can't be used any more."""


def nothing(request: Any) -> Sequence[str]:
    return ()


GROUPS_OF: Final[Mapping[str, Callable[[Any], Sequence[str]]]] = {
    "OffsetCommitRequest": lambda request: (request.group_id,),
    "TxnOffsetCommitRequest": lambda request: (request.group_id,),
    "OffsetDeleteRequest": lambda request: (request.group_id,),
    "DeleteGroupsRequest": lambda request: request.groups_names,
}
"""The groups that a request changes, whose names may be empty."""


class Answers(NamedTuple):
    """The answers of both brokers, as plain values."""

    request: Any
    version: int
    ours: Any
    theirs: Any


class Twins:
    """Odradek first, Apache Kafka second. Each lane has a topic whose metadata shows that earlier changes have arrived,
    and separate connections for requests that close theirs and change nothing."""

    def __init__(self, odradek: Peer, apache: Peer, lane: int = 0) -> None:
        self.peers = (odradek, apache)
        self.asides = tuple(Peer(peer.name, f"{peer.host}:{peer.port}", peer.data) for peer in self.peers)
        self.vocabularies: list[Vocabulary] = []
        self.prefix = ""
        self._fences = 0
        self._fence_topic = f"lane-fence-{lane}"
        for peer in self.peers:
            peer.create(self._fence_topic)

    def begin(self, prefix: str) -> None:
        """Creates a new world on both brokers."""
        self.prefix = prefix
        for peer in self.peers:
            peer.close()
            peer.names.clear()
            peer.producer_ids.clear()
            peer.random_ids.clear()
        with ThreadPoolExecutor(2) as pool:
            self.vocabularies = list(pool.map(lambda peer: FuzzWorld(peer, prefix).build(), self.peers))
        for peer, vocabulary in zip(self.peers, self.vocabularies, strict=True):
            for one in vocabulary.transactionals:
                Plain(peer).producer(one.producer_id)
            for group in vocabulary.groups:
                for member in group.members:
                    Plain(peer).text("", member.member_id)

    def ask(self, cls: type, version: int, seed: str) -> Answers | None:
        """Sends the request of a seed to both; returns None if it must not be sent."""
        drawn = [Draw(random.Random(seed), vocabulary).request(cls, version) for vocabulary in self.vocabularies]
        tamed = [tame(one, version, vocabulary) for one, vocabulary in zip(drawn, self.vocabularies, strict=True)]
        if not all(tamed):
            return None
        if isinstance(drawn[0], ProduceRequest):
            if drawn[0].acks == 0:
                return None  # nothing tells what became of it
            if random.Random(f"{seed}/doubled").random() >= DOUBLED and names_a_partition_twice(drawn[0]):
                return None
        if isinstance(drawn[0], DescribeTopicPartitionsRequest) and not drawn[0].topics:
            for request in drawn:  # all topics: those of other episodes would take the room of fewer
                request.response_partition_limit = ALL_PARTITIONS
        if "" in GROUPS_OF.get(type(drawn[0]).__name__, nothing)(drawn[0]):
            return None  # the group without a name is everybody's
        try:
            return self.put(drawn, version)
        except struct.error:  # a string that its version has no length for
            return None

    def put(self, requests: Sequence[Any], version: int) -> Answers:
        """Sends each broker its request; repeats it if only the timing makes a difference."""
        answers = self.once(requests, version)
        for _ in range(3):
            if answers.ours == answers.theirs or isinstance(answers.theirs, str):
                break
            if type(requests[0]).__name__ not in READS:
                break
            self.fence()
            answers = self.once(requests, version)
        if type(requests[0]).__name__ in CHANGES_METADATA:
            self.fence()
        if type(requests[0]).__name__ in REBALANCES and not isinstance(answers.theirs, str):
            self.settle(requests[0].group_id)
        if isinstance(requests[0], EndTxnRequest) and not isinstance(answers.theirs, str):
            self.complete(requests[0].transactional_id)
        return answers

    def complete(self, transactional_id: str) -> None:
        """Waits until an ending transaction has its markers in both brokers, but at most SETTLE_S in total."""
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        deadline = time.monotonic() + SETTLE_S
        for peer in self.peers:
            while time.monotonic() < deadline:
                answer: Any = peer.quietly(request, 0)
                if not answer.transaction_states[0].transaction_state.startswith("Prepare"):
                    break
                time.sleep(POLL_S)  # it tells nobody when it is done

    def settle(self, group: str) -> None:
        """Waits until a classic group waits for none of its members, because the time at which it removes one would
        make a difference. Some members may take hours."""
        request, deadline = DescribeGroupsRequest(groups=[group]), time.monotonic() + SETTLE_S
        for peer in self.peers:
            while time.monotonic() < deadline:
                answer: Any = peer.quietly(request, 5)
                if answer.groups[0].group_state not in REBALANCING:
                    break
                time.sleep(POLL_S)  # it tells nobody when it is done

    def once(self, requests: Sequence[Any], version: int) -> Answers:
        answers = []
        connections = self.asides if type(requests[0]).__name__ in ASIDE else self.peers
        for connection, request in zip(connections, requests, strict=True):
            begin(connection, sized(frame(request, version, 7)))
        patience = (ANSWER_S, SILENCE_S if is_silent_over(requests[0]) else ANSWER_S)
        for peer, connection, request, vocabulary, patience_s in zip(
            self.peers, connections, requests, self.vocabularies, patience, strict=True
        ):
            answer = take(connection, request, version, patience_s)
            for _ in range(PATIENT_TRIES):
                if isinstance(answer, str) or BUSY.isdisjoint(error_codes(Told(peer, gives_ids=False).struct(answer))):
                    break
                time.sleep(POLL_S)  # a coordinator that is at work tells nobody when it is done
                begin(connection, sized(frame(request, version, 7)))
                answer = take(connection, request, version, patience_s)
            if not isinstance(answer, str):
                learn(vocabulary, request, answer)
                self.drop_foreign(answer)
                plain = Told(peer, gives_ids=type(request).__name__ in GIVES_IDS)
                answer = in_order(plain.batches(plain.struct(answer)))
            answers.append(answer)
        if answers[0] != answers[1] and (isinstance(answers[0], str) or isinstance(answers[1], str)):
            for connection in connections:
                connection.close()
        return Answers(requests[0], version, *answers)

    def fence(self) -> None:
        """Waits until Apache Kafka's broker has all earlier decisions of its controller."""
        self._fences += 1
        value = str(1_000_000 + self._fences)
        config = AlterableConfig(name="retention.ms", config_operation=SET, value=value)
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=self._fence_topic, configs=[config])
        peer = self.peers[1]
        peer.quietly(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
        described = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=self._fence_topic, configuration_keys=["retention.ms"]
        )
        peer.wait_for(
            DescribeConfigsRequest(resources=[described]), 4, lambda answer: answer.results[0].configs[0].value == value
        )

    def drop_foreign(self, answer: Any) -> None:
        """Removes data of other episodes from an answer, and sorts transactions, so that producers get the same numbers
        on both brokers."""
        for field in fields_of(type(answer)):
            value = getattr(answer, field.name)
            if not isinstance(value, list) or not value or not hasattr(value[0], "__wire__"):
                continue
            own = [item for item in value if not self.is_foreign(item)]
            if isinstance(answer, ListTransactionsResponse):
                own.sort(key=lambda one: one.transactional_id)
            setattr(answer, field.name, own)
            for item in own:
                self.drop_foreign(item)

    def is_foreign(self, item: Any) -> bool:
        """True if an item belongs to another episode. The group without a name belongs to all."""
        if is_of_an_internal_log(item) or (isinstance(item, ListedGroup) and not item.group_id):
            return True
        names = (getattr(item, name, None) for name in NAMES)
        return not all(self.is_own(name) for name in names if isinstance(name, str))

    def is_own(self, name: str) -> bool:
        match = OF_AN_EPISODE.match(name)
        return match is None or match[1] == self.prefix


OF_A_LOG: Final = frozenset(
    {"partition_size", "high_watermark", "end_offset", "offset", "records", "low_watermark", "active_producers", "lag"}
)
"""Fields of a partition that depend on its log."""


def is_of_an_internal_log(item: Any) -> bool:
    """True for the content of an internal topic's log, to which all episodes write."""
    if not {getattr(item, name, None) for name in ("name", "topic", "topic_name")} & set(INTERNAL):
        return False
    parts = getattr(item, "partitions", None) or ()
    return any(hasattr(part, name) for part in parts for name in OF_A_LOG)


def in_order(value: Any) -> Any:
    """Returns the answer with sorted lists, and without random ids."""
    if isinstance(value, dict):
        return {name: item if name == "records" else in_order(item) for name, item in value.items()}
    if isinstance(value, str) and MADE_UP_ID.match(value):
        return "some id"
    if isinstance(value, list):
        items = [in_order(item) for item in value]
        return sorted(items, key=about) if items and isinstance(items[0], dict) else sorted(items, key=str)
    return value


def error_codes(value: Any) -> Iterator[int]:
    """Yields the error codes in an answer of plain values."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name.endswith("error_code") and isinstance(item, int):
                yield item
            else:
                yield from error_codes(item)
    elif isinstance(value, list):
        for item in value:
            yield from error_codes(item)


class Told(Plain):
    """An answer as plain values. Its producers have numbers, in the order in which this episode got their ids; other
    producers have none, because their order differs between brokers."""

    def __init__(self, peer: Peer, *, gives_ids: bool) -> None:
        super().__init__(peer)
        self.gives_ids = gives_ids

    def struct(self, value: object) -> dict[str, object]:
        plain = super().struct(value)
        if "partition_size" in plain:
            plain["partition_size"] = "some" if plain["partition_size"] else 0  # no two compress alike
        return plain

    def number(self, name: str, value: Any) -> object:
        if name == "producer_id" and value >= 0 and not self.gives_ids and value not in self.peer.producer_ids:
            return "a producer"
        return super().number(name, value)

    def batches(self, value: Any) -> Any:
        """Returns the answer with the producers of its records by number, like those in its fields."""
        if isinstance(value, dict):
            return {name: self.batches(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.batches(item) for item in value]
        if isinstance(value, str) and PRODUCER_OF_A_BATCH.search(value):
            return PRODUCER_OF_A_BATCH.sub(lambda match: str(self.number("producer_id", int(match[1]))), value)
        return value


def names_a_partition_twice(request: ProduceRequest) -> bool:
    named = [(topic.name, topic.topic_id, part.index) for topic in request.topic_data for part in topic.partition_data]
    return len(named) > len(set(named))


def about(item: dict[str, Any]) -> tuple[str, str]:
    """Returns the sort key of an item: its subject, then all of it."""
    return str([item.get(name) for name in ORDER]), str(item)


def begin(peer: Peer, data: bytes) -> None:
    """Sends the request; opens the connection again if it was closed."""
    try:
        peer.send(data)
    except OSError:
        peer.close()
        peer.send(data)


def take(peer: Peer, request: Any, version: int, patience_s: float) -> Any:
    """Returns the answer, or a word for the reason why there is none."""
    try:
        line = peer.line()
        line.socket.settimeout(patience_s)
        answer: Any = decode_response(line.receive(), response_class(request), version)
        line.socket.settimeout(peer.patience_s)
        return answer
    except TimeoutError:
        peer.close()
        return NO_ANSWER
    except OSError:
        peer.close()
        return CLOSED
    except (ProtocolError, AssertionError):
        return UNREADABLE


def requests_of(served: dict[int, range], classes: Sequence[type]) -> Iterator[tuple[type, int]]:
    """Yields every request and version that both serve."""
    for cls in classes:
        first, last = identity(cls).versions
        for version in served.get(identity(cls).key, range(0)):
            if first <= version <= last:
                yield cls, version
