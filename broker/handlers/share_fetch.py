"""ShareFetch (78): acquires records for a member of a share group, and takes its acknowledgements (KIP-932).

v1 is the first stable version; v2 adds acquisition of exactly as many records as requested (KIP-1206) and renewal of
locks (KIP-1222). A fetch with epoch -1 ends the share session, and takes acknowledgements only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final, TypeAlias, TypeVar

from broker.clock import pause
from broker.dispatch.api import SHARE_GROUPS, Api
from broker.dispatch.call import Call
from broker.dispatch.parts import PART_ENTRIES
from broker.dispatch.rules import in_order, of_group, whole
from broker.fetch.request import FetchParams
from broker.replica.replica import READ_COMMITTED, READ_UNCOMMITTED
from broker.request.authorisation import READ_GROUP, READ_TOPIC, inside
from broker.request.turns import ENTRIES, Turns, batches
from broker.share.acknowledging import AcknowledgedBatch, AcknowledgeRules, Acknowledging, code_of, message_of
from broker.share.fetching import PartitionAnswer, ShareFetching
from broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, PartitionId, SessionKey, ShareSession, member_id_of
from coordinator.share_partition.request import AcquireRequest
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from protocol.tuples import new_tuple
from protocol.types import Uuid

OF_SESSION: Final = inside("for each topic of the session", READ_TOPIC)
"""The rule of the topics, which include the session's topics that the request doesn't name."""

V = TypeVar("V")
Q = TypeVar("Q")
Acknowledges = TypeVar("Acknowledges", ShareFetchRequest, ShareAcknowledgeRequest)

_batches: Final = attrgetter("acknowledgement_batches")

Partitions: TypeAlias = dict[PartitionId, bool]
"""The partitions of a request, or of a session, each with True if the next answer must include it."""

NOTHING: Final = PartitionAnswer()
"""The answer of a partition without records and without an error."""

NOT_CHANGED: Final = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)
"""The leader in an answer that doesn't name it."""

ZERO_IN_RENEWALS: Final = ("max_bytes", "min_bytes", "max_records", "max_wait_ms")
"""The fields that must be zero in a request that renews locks."""

NEW_LEADER: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


async def share_fetch(call: Call[ShareFetchRequest]) -> ShareFetchResponse:
    key = session_key(call)
    if not key.group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    check_renewal(call.request)
    added, forgotten = await named(call)
    session = await open_session(call, key, added, forgotten)
    acknowledging = await acknowledged(call, key) if acknowledges(call.request) else Acknowledging()
    fetching = await begin_fetch(call, key, session)
    if fetching is not None:
        await gather(fetching, acknowledging, call.turns(), may_wait=call.request.max_wait_ms > 0)
    await acknowledging.wait(call.turns())
    return await build_response(call, key, session, acknowledging, fetching)


async def gather(fetching: ShareFetching, acknowledging: Acknowledging, turns: Turns, *, may_wait: bool) -> None:
    """Acquires records, at once if enough are available. A member that has just acknowledged records comes after the
    members that already wait."""
    if may_wait and acknowledging.is_used and await fetching.others_wait(turns):
        await fetching.wait(comes_last=True)
    elif not await fetching.attempt(turns, is_last=not may_wait):
        await fetching.wait(comes_last=False)


def session_key(call: Call[ShareFetchRequest] | Call[ShareAcknowledgeRequest]) -> SessionKey:
    """Returns the key of the request's session. Raises INVALID_REQUEST."""
    request = call.request
    if request.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    return new_tuple(SessionKey, (request.group_id, member_id_of(request.member_id)))


def check_renewal(request: ShareFetchRequest) -> None:
    """Raises INVALID_REQUEST for a renewal that fetches as well."""
    if not request.is_renew_ack:
        return
    nonzero = [name for name in ZERO_IN_RENEWALS if getattr(request, name)]
    if nonzero:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{', '.join(nonzero)} must be 0 if isRenewAck is true.")


async def named(call: Call[ShareFetchRequest]) -> tuple[Partitions, Partitions]:
    """Returns the partitions that a request adds to its session, and the partitions that it removes."""
    request = call.request
    added = (
        (topic.topic_id, [partition.partition_index for partition in topic.partitions]) for topic in request.topics
    )
    forgotten = ((topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data)
    return await partition_ids(call, added), await partition_ids(call, forgotten)


async def partition_ids(call: Call[ShareFetchRequest], topics: Iterable[tuple[Uuid, Sequence[int]]]) -> Partitions:
    """Returns the partitions of topics in a request, as a session has them."""
    turns = call.turns()
    ids: Partitions = {}
    for topic_id, indexes in topics:
        for some in batches(indexes):
            await turns.next()
            for index in some:
                ids[new_tuple(PartitionId, (topic_id, index))] = False
    return ids


async def open_session(
    call: Call[ShareFetchRequest], key: SessionKey, added: Partitions, forgotten: Partitions
) -> ShareSession | None:
    """Returns the session, new or advanced by an epoch; None if the request ends it. Raises KafkaError."""
    request, groups = call.request, call.broker.share_groups
    if request.share_session_epoch == FINAL_EPOCH:
        groups.sessions.find(key)
        return None
    if request.share_session_epoch == INITIAL_EPOCH:
        if acknowledges(request):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if groups.is_full(key):
            await pause(call.host.clock, request.max_wait_ms)  # the next attempt must not follow at once
        return groups.open_session(key, added, call.connection)
    session = groups.sessions.go_on(key, request.share_session_epoch)
    turns = call.turns()
    for some in batches(list(added)):
        await turns.next()
        session.update(some, ())
    for some in batches(list(forgotten)):
        await turns.next()
        session.update((), some)
    return session


async def acknowledged(call: Call[Acknowledges], key: SessionKey) -> Acknowledging:
    """Applies the request's acknowledgements, in turns with other requests."""
    request, turns = call.request, call.turns()
    acknowledgements: dict[PartitionId, Sequence[AcknowledgedBatch]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            await turns.next()
            named = new_tuple(PartitionId, (topic.topic_id, partition.partition_index))
            acknowledgements[named] = partition.acknowledgement_batches
    denied = await take_unreadable(call, acknowledgements)
    acknowledging = Acknowledging()
    rules = AcknowledgeRules(call.version, request.is_renew_ack)
    await acknowledging.acknowledge(call.broker.share_groups, *key, acknowledgements, rules, turns)
    acknowledging.results.update(denied)
    return acknowledging


def acknowledges(request: ShareFetchRequest) -> bool:
    """True if any partition has acknowledgements: then all partitions in the request count as acknowledged."""
    return any(any(map(_batches, topic.partitions)) for topic in request.topics)


async def begin_fetch(
    call: Call[ShareFetchRequest], key: SessionKey, session: ShareSession | None
) -> ShareFetching | None:
    """Returns the fetch, None for a request without one. Each fetch of a session begins with another partition."""
    request = call.request
    if session is None or request.is_renew_ack:
        return None
    checked = list(session.partitions)  # another connection may add partitions between the turns
    denied = await unreadable(call, checked)
    groups = call.broker.share_groups
    partitions: list[PartitionId] = []
    errors: dict[PartitionId, PartitionAnswer] = {}
    shared: dict[str, PartitionAnswer] = {}
    """Answers by their error. Partitions with the same error share one object."""
    turns = call.turns()
    for some in batches(checked):
        await turns.next()
        for partition_id in some:
            if partition_id in denied:
                continue
            error = groups.error_of(partition_id)
            if error is None:
                partitions.append(partition_id)
            else:
                errors[partition_id] = shared.setdefault(str(error), PartitionAnswer(error=error))
    if not partitions and not errors:
        return None
    turn = request.share_session_epoch % max(len(partitions), 1)
    max_bytes = min(request.max_bytes, call.broker.config.fetch_max_bytes)
    limit = request.max_records, request.batch_size, request.share_acquire_mode
    acquire_request = new_tuple(AcquireRequest, (key.member_id, *limit))
    isolation_level = isolation(groups.config(key.group_id).share_isolation_level)
    limits = FetchParams(min(request.min_bytes, max_bytes), max_bytes, request.max_wait_ms, isolation_level)
    return ShareFetching(groups, key.group_id, partitions[turn:] + partitions[:turn], errors, acquire_request, limits)


def isolation(name: str) -> int:
    """Returns an isolation level, as the option share.isolation.level names it."""
    return READ_COMMITTED if name == "read_committed" else READ_UNCOMMITTED


async def unreadable(call: Call[Q], partition_ids: Iterable[PartitionId]) -> dict[PartitionId, KafkaError]:
    """Returns the partitions whose topics the client may not read, with the error of each. An unknown id gets a
    different error elsewhere."""
    if call.host.authorizer is None:
        return {}
    image = call.broker.image
    named = list(partition_ids)  # a session may change between the turns
    topics = await call.turns().map(lambda partition_id: image.topic_by_id(partition_id.topic_id), named)
    readable = await call.permitted(READ_TOPIC, (topic.name for topic in topics if topic is not None))
    error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return {
        partition_id: error
        for partition_id, topic in zip(named, topics, strict=True)
        if topic is not None and topic.name not in readable
    }


async def take_unreadable(call: Call[Q], acknowledgements: dict[PartitionId, V]) -> dict[PartitionId, KafkaError]:
    """Removes the acknowledgements of topics that the client may not read, and returns their errors."""
    denied = await unreadable(call, acknowledgements)
    for partition_id in denied:
        del acknowledgements[partition_id]
    return denied


# The answer.


async def build_response(
    call: Call[ShareFetchRequest],
    key: SessionKey,
    session: ShareSession | None,
    acknowledging: Acknowledging,
    fetching: ShareFetching | None,
) -> ShareFetchResponse:
    groups = call.broker.share_groups
    acquisitions: dict[PartitionId, PartitionAnswer] = {} if fetching is None else fetching.answers
    due: list[PartitionId] = []
    """The partitions that the answer includes though they returned no records: new partitions, and partitions whose
    last answer was an error."""
    if session is not None:
        denied = await unreadable(call, chain(acquisitions, session.partitions))
        acquisitions |= {partition_id: PartitionAnswer(error=error) for partition_id, error in denied.items()}
        due = [partition_id for partition_id, is_due in session.partitions.items() if is_due]
    turns = call.turns()
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    answered: set[PartitionId] = set()
    leaders_lost = False
    for number, partition_id in enumerate(chain(acquisitions, due, acknowledging.results)):
        if number % ENTRIES == 0:
            await turns.next()
        if partition_id in answered:
            continue
        answered.add(partition_id)
        acquisition = acquisitions.get(partition_id, NOTHING)
        if session is not None and partition_id in session.partitions:
            session.partitions[partition_id] = acquisition.error is not None
        data = answer(partition_id, acquisition, acknowledging.results.get(partition_id))
        if data.error_code in NEW_LEADER:
            leaders_lost = True
            data.current_leader = current_leader(call, partition_id)
        topic = topics.get(partition_id.topic_id)
        if topic is None:
            topic = topics[partition_id.topic_id] = ShareFetchableTopicResponse(
                topic_id=partition_id.topic_id, partitions=[]
            )
        topic.partitions.append(data)
    call.context.is_large |= len(answered) > PART_ENTRIES
    if session is None:
        groups.close_session(key)
    return ShareFetchResponse(
        error_code=0,
        acquisition_lock_timeout_ms=groups.config(key.group_id).share_record_lock_duration_ms,
        responses=list(topics.values()),
        node_endpoints=endpoints(call) if leaders_lost else [],
    )


def answer(
    partition_id: PartitionId, acquisition: PartitionAnswer, acknowledge_error: KafkaError | None
) -> PartitionData:
    return PartitionData(
        partition_index=partition_id.partition,
        error_code=code_of(acquisition.error),
        error_message=message_of(acquisition.error),
        acknowledge_error_code=code_of(acknowledge_error),
        acknowledge_error_message=message_of(acknowledge_error),
        current_leader=NOT_CHANGED,
        records=acquisition.records,
        acquired_records=[
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in acquisition.acquired
        ],
    )


def current_leader(call: Call[ShareFetchRequest], partition_id: PartitionId) -> LeaderIdAndEpoch:
    topic = call.broker.image.topic_by_id(partition_id.topic_id)
    partition = None if topic is None else topic.partitions.get(partition_id.partition)
    if partition is None:
        return LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
    return LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)


def endpoints(call: Call[ShareFetchRequest]) -> list[NodeEndpoint]:
    """Returns all brokers that have an endpoint for the connection's listener."""
    result = []
    for broker_id, broker in call.broker.image.brokers.items():
        endpoint = broker.endpoint(call.context.listener)
        if endpoint is not None:
            result.append(NodeEndpoint(node_id=broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack))
    return result


API = Api(
    ShareFetchRequest,
    ShareFetchResponse,
    share_fetch,
    authorize=in_order(whole(READ_GROUP, of_group), OF_SESSION),
    protocol=SHARE_GROUPS,
    explains=True,
)
