"""FindCoordinator (10): finds the broker that coordinates a group, a transactional id or a share partition.

v1 adds key types (KIP-98) and an error message, v3 is flexible, v4 takes several keys at once (KIP-699), v5 brings
ABORTABLE errors (KIP-890), v6 share partitions as keys (KIP-932). The first request creates the internal topic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import denial
from broker.request.authorisation import (
    CLUSTER_ACTION_CLUSTER,
    CLUSTER_NAME,
    DESCRIBE_GROUP,
    DESCRIBE_TRANSACTIONAL_ID,
    Requirement,
    inside,
)
from broker.shards.hosting import KeyCoordinator
from coordinator.group.modern.requests import is_blank
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from protocol.schema import since

FIRST_BATCHED_VERSION = since(FindCoordinatorRequest, "coordinator_keys")
FIRST_SHARE_VERSION = 6
SHARE = 2
REQUIREMENTS: Final[Mapping[int, Requirement]] = {
    0: DESCRIBE_GROUP,
    1: DESCRIBE_TRANSACTIONAL_ID,
    SHARE: CLUSTER_ACTION_CLUSTER,
}
"""The permission to find the coordinator of a key, by its type. Only brokers look for the coordinators of share
partitions."""

NO_NODE = -1
NO_ERROR_MESSAGE = "NONE"
"""The error message of a successful answer."""

TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
PARTITION = re.compile(r"[+-]?\d+")
MAX_DIGITS: Final = 100
"""Maximum digits of a partition's number, with leading zeros: parsing thousands of digits would take too long."""

INT32: Final = range(-(1 << 31), 1 << 31)


async def find_coordinator(call: Call[FindCoordinatorRequest]) -> FindCoordinatorResponse:
    request = call.request
    if call.version >= FIRST_BATCHED_VERSION:
        return FindCoordinatorResponse(coordinators=await find_all(call, request.coordinator_keys))
    coordinator = await find(call, request.key)
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=error_code(coordinator.error_code).message if coordinator.error_code else NO_ERROR_MESSAGE,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


async def find_all(call: Call[FindCoordinatorRequest], keys: Sequence[str]) -> list[Coordinator]:
    """Finds the coordinators of all keys. If the internal topic must be created, this is tried once for all keys."""
    return await call.turns().map_together(partial(find, call), keys)


async def find(call: Call[FindCoordinatorRequest], key: str) -> Coordinator:
    try:
        leader = await coordinator_of(call, key).leader_of(key)
        broker = call.broker.image.brokers.get(leader)
        endpoint = None if broker is None else broker.endpoint(call.context.listener)
        if endpoint is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    except KafkaError as error:
        message = error.message if error.code is ErrorCode.INVALID_REQUEST else ""
        return Coordinator(key=key, node_id=NO_NODE, host="", port=-1, error_code=error.code, error_message=message)
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_code=0, error_message="")


def coordinator_of(call: Call[FindCoordinatorRequest], key: str) -> KeyCoordinator:
    """Returns the coordinator for the kind of key. Raises INVALID_REQUEST for a kind that this version doesn't have,
    and the error of a client that is not authorized."""
    key_type = call.request.key_type
    requirement = REQUIREMENTS.get(key_type)
    if requirement is not None and not call.may(requirement, CLUSTER_NAME if key_type == SHARE else key):
        raise denial(requirement)
    coordinator = call.broker.coordinators.get(key_type)
    if coordinator is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if key_type == SHARE and (call.version < FIRST_SHARE_VERSION or not is_share_partition(key)):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "")  # Kafka has no message for a share partition's key
    return coordinator


def is_share_partition(key: str) -> bool:
    """True for a group, a topic id and a partition, as Java reads them (SharePartitionKey); the group's name may have
    colons."""
    parts = key.rsplit(":", 2)
    if len(parts) < 3:
        return False
    group, topic_id, partition = parts
    return (
        not is_blank(group)
        and TOPIC_ID.fullmatch(topic_id) is not None
        and PARTITION.fullmatch(partition) is not None
        and len(partition) <= MAX_DIGITS
        and int(partition) in INT32
    )


API = Api(
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    find_coordinator,
    authorize=inside("for each key, by its type", *REQUIREMENTS.values()),
    entries=(Entries("coordinator_keys", "coordinators"),),
)
