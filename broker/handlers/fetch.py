"""Fetch (1): reads record batches from partitions, once there are enough.

v0-1 read message sets v0 and v2-3 message sets v1: batches are down-converted for them; v3 adds the response's size
limit, v4 the isolation level (KIP-98), v5 log start offsets, v7 incremental sessions (KIP-227), v9 leader epochs
(KIP-320), v10 zstd (KIP-110), v11 the client's rack (KIP-392), v12 is flexible and finds diverging logs (KIP-595), v13
names topics by id (KIP-516), v15 moves the replica id into a tag (KIP-903), v16 returns the current leader (KIP-951),
v17 and v18 serve replicas of the metadata log. Followers read to the log's end, and the leader learns their log end
offsets by what they fetch. Consumers from v11 on are served by any replica, up to its high watermark, and
replica.selector.class can send them to a replica in their rack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.dispatch.api import Api, WireParser
from broker.dispatch.call import Call
from broker.fetch import wire
from broker.fetch.fetch import MANY_PARTITIONS, Outcome, accept, is_incremental, serve
from broker.fetch.fetches import Fetches
from broker.fetch.in_turns import accept_and_serve_in_turns, serve_in_turns
from broker.fetch.message_sets import serve_messages
from broker.fetch.partition import FetchedPartition
from broker.fetch.request import FIRST_BATCH_VERSION, FIRST_TOPIC_ID_VERSION, FetchingReplica, ParsedFetch, PartitionKey
from broker.replica.replica import READ_TO_END
from broker.replica.replicas import compact
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER, READ_TOPIC, inside
from broker.request.context import Context
from broker.request.eager import Waiting, begin
from broker.request.turns import batches
from coordinator.replication.isr import NO_BROKER_EPOCH
from protocol.errors import KafkaError
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from protocol.schema import since
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker

FIRST_REPLICA_STATE_VERSION: Final = since(FetchRequest, "replica_state")
"""Later versions have the replica id in a tagged field."""


async def fetch(call: Call[FetchRequest]) -> Outcome:
    """Answers at once when there are enough bytes, an error, or no time to wait; else once appends bring enough."""
    fetches = call.broker.fetches
    if call.version < FIRST_BATCH_VERSION:
        return await serve_messages(accept(fetches, call.context, await parsed(call)), call.broker.record_work)
    outcome = accept_and_serve(fetches, call.context, await parsed(call))
    return await outcome if isinstance(outcome, Waiting) else outcome


def accept_and_serve(fetches: Fetches, context: Context, request: ParsedFetch) -> Outcome | Waiting[Outcome]:
    """Returns the answer to a request. An error of its session is an answer without a session, and without
    partitions."""
    if len(request.named) > MANY_PARTITIONS and not is_incremental(request):
        return begin(accept_and_serve_in_turns(fetches, context, request))
    try:
        fetch = accept(fetches, context, request)
    except KafkaError as error:
        return FetchResponse(error_code=error.code, responses=[])
    return begin(serve_in_turns(fetch)) if fetch.is_many else serve(fetch)


async def parsed(call: Call[FetchRequest]) -> ParsedFetch:
    """Returns the request as `wire.parse` returns it."""
    request, version, turns = call.request, call.version, call.turns()
    named: list[FetchedPartition] = []
    for topic in request.topics:
        key = key_of(topic, version)
        for some in batches(topic.partitions):
            await turns.next()
            named += [fetched_partition(topic, key, partition, version) for partition in some]
    forgotten = [key for topic in request.forgotten_topics_data for key in keys_of(topic, version)]
    replica = fetching_replica(call)
    result = ParsedFetch(
        version,
        request.min_bytes,
        min(request.max_bytes, call.broker.fetches.max_bytes),
        request.max_wait_ms,
        request.isolation_level if replica is None else READ_TO_END,
        request.session_id,
        request.session_epoch,
        named,
        forgotten,
        replica,
    )
    result.choose_by(call.broker.fetches.selector(call.context.listener, request.rack_id))
    return result


def fetching_replica(call: Call[FetchRequest]) -> FetchingReplica | None:
    """Returns the follower that fetches; None for a consumer."""
    request = call.request
    if call.version < FIRST_REPLICA_STATE_VERSION:
        broker_id, broker_epoch = request.replica_id, NO_BROKER_EPOCH
    else:
        broker_id, broker_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    if broker_id < 0:
        return None
    return FetchingReplica(broker_id, broker_epoch, call.now_ms, call.broker.fetches.throttle)


def fetched_partition(topic: FetchTopic, key: bytes, partition: FetchPartition, version: int) -> FetchedPartition:
    """Returns a partition that the request names."""
    result = FetchedPartition(
        key,
        partition.partition,
        partition.fetch_offset,
        partition.partition_max_bytes,
        partition.current_leader_epoch,
        partition.last_fetched_epoch,
        partition.log_start_offset,
    )
    if version < FIRST_TOPIC_ID_VERSION:
        result.name = TopicPartition(topic.topic, partition.partition)
    return result


def keys_of(topic: ForgottenTopic, version: int) -> list[PartitionKey]:
    """Returns the partitions of a topic that the session is to forget."""
    return [(key_of(topic, version), index) for index in topic.partitions]


def key_of(topic: FetchTopic | ForgottenTopic, version: int) -> bytes:
    """Returns the topic's key: its id since version 13, its name before."""
    return topic.topic_id if version >= FIRST_TOPIC_ID_VERSION else compact(topic.topic)


def parsed_in_place(
    broker: Broker, context: Context, frame: memoryview, front: bytes, position: int
) -> ParsedFetch | None:
    """Returns the request whose body is at `position`; None for an unusual request."""
    return wire.parse(broker.fetches, context, frame, front, position)


def serve_parsed(broker: Broker, context: Context, request: ParsedFetch) -> Outcome | Waiting[Outcome]:
    """Serves a request that was parsed in place."""
    return accept_and_serve(broker.fetches, context, request)


HOW: Final = "for each topic of the request or its session; for brokers CLUSTER_ACTION covers all topics"

API = Api(
    FetchRequest,
    FetchResponse,
    fetch,
    authorize=inside(HOW, CLUSTER_ACTION_CLUSTER, READ_TOPIC),
    wire=WireParser(parsed_in_place, serve_parsed, wire.FIRST_VERSION),
)
