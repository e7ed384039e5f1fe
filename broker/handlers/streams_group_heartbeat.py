"""StreamsGroupHeartbeat (88): a Kafka Streams client joins, leaves, reports changes or stays alive (KIP-1071).

v1 adds the status of missing client tags, and returns the acceptable recovery lag as an int64 (KIP-1331). The
coordinator creates the group's internal topics with the member's rights, after the answer (KafkaApis).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from broker.dispatch.api import STREAMS_GROUPS, Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.dispatch.rules import denial, in_order, of_group, own, reject, whole
from broker.request.authorisation import CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC, READ_GROUP, inside
from coordinator.cluster.controller import Asker
from coordinator.cluster.topics.names import is_internal, is_valid
from coordinator.group.streams.heartbeat import StreamsHeartbeatResult, heartbeat
from coordinator.group.streams.requests import check_size
from coordinator.group.streams.status import StatusCode
from coordinator.group.streams.topology import invalid
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

LISTED_ERRORS: Final = 3
"""Number of topics whose errors a status names; it counts the others."""

LISTED_NAMES: Final = 100
"""Number of unauthorized topics that a status names; it counts the others. Clients can't read a longer string than
32,767 bytes, and a topic's name has up to 249."""


async def streams_group_heartbeat(call: Call[StreamsGroupHeartbeatRequest]) -> StreamsGroupHeartbeatResponse:
    result = await call.broker.groups.submit(call.request.group_id, heartbeat, call.request, client_of(call))
    if result.missing:
        await create_topics(call, result)
    return result.response


async def create_topics(call: Call[StreamsGroupHeartbeatRequest], result: StreamsHeartbeatResult) -> None:
    """Creates the missing topics in the background, if the client may; the status has the errors so far."""
    missing, topics = result.missing, call.broker.groups.streams_topics
    if not call.may(CREATE_CLUSTER, quiet=True):
        permitted = await call.permitted(CREATE_TOPIC, missing)
        denied = [name for name in missing if name not in permitted]
        if denied:
            explain(result.response, f"Unauthorized to CREATE on topics {listed(denied, LISTED_NAMES)}.")
            return
    config = call.broker.groups.group_config(call.request.group_id)
    quota = call.broker.mutation_quotas.find(call.context, is_strict=True)
    asker = Asker(call.context.requester, quota=quota)
    topics.create(missing, asker, remember_ms=2 * config.streams_heartbeat_interval_ms)
    errors = topics.errors(missing)
    if errors:
        described = [f"{name} ({error})" for name, error in errors.items()]
        explain(result.response, f"Creation failed: {listed(described, LISTED_ERRORS)}.")


def listed(topics: Sequence[str], maximum: int) -> str:
    """Returns the first topics, and the number of the others."""
    others = len(topics) - maximum
    return ", ".join(topics[:maximum]) + (f" and {others} more" if others > 0 else "")


def explain(response: StreamsGroupHeartbeatResponse, reason: str) -> None:
    """Adds the reason to the status of the missing internal topics."""
    response.status = response.status or []
    for status in response.status:
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {reason}"
            return
    response.status.append(Status(status_code=int(StatusCode.MISSING_INTERNAL_TOPICS), status_detail=reason))


def required_topics(request: StreamsGroupHeartbeatRequest) -> list[str]:
    """Returns the topics of the topology, each once: sources, repartition topics and changelogs."""
    return list(dict.fromkeys(_named_topics(request)))


def _named_topics(request: StreamsGroupHeartbeatRequest) -> Iterator[str]:
    for subtopology in request.topology.subtopologies if request.topology is not None else ():
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        yield from (topic.name for topic in subtopology.repartition_source_topics)
        yield from (topic.name for topic in subtopology.state_changelog_topics)


def check_names(names: Collection[str]) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY if a topic is Kafka's own, or its name is invalid."""
    prohibited = [name for name in names if is_internal(name)]
    if prohibited:
        raise invalid(f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited.")
    malformed = [name for name in names if not is_valid(name)]
    if malformed:
        raise invalid(f"Topic names {','.join(malformed)} are not valid topic names.")


async def permitted_topology(call: Call[StreamsGroupHeartbeatRequest], handle: Handle) -> object:
    """Authorizes the client for every topic of the topology, if there are not too many names and all are valid."""
    topology = call.request.topology
    try:
        if topology is not None:
            check_size(topology)
        names = required_topics(call.request)
        check_names(names)
    except KafkaError as error:
        return await reject(call, error)
    if len(await call.permitted(DESCRIBE_TOPIC, names)) < len(names):
        return await reject(call, denial(DESCRIBE_TOPIC))
    return await handle(call)


API = Api(
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    streams_group_heartbeat,
    authorize=in_order(
        whole(READ_GROUP, of_group),
        own(permitted_topology, DESCRIBE_TOPIC, always=True),
        inside(
            "for each internal topic that is missing, unless CREATE on CLUSTER is allowed; otherwise a status says so",
            CREATE_CLUSTER,
            CREATE_TOPIC,
        ),
    ),
    protocol=STREAMS_GROUPS,
    explains=True,
)
