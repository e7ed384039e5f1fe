"""The operations that a client may do on a resource, as bits in answers (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from broker.exchange.authorisation import CLUSTER_NAME, DESCRIBE_CLUSTER, Operation, Requirement, Resource
from broker.requests.call import HostCall
from broker.requests.operations import CLUSTER_OPERATIONS, GROUP_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS

Q = TypeVar("Q")

NOT_REQUESTED: Final = NOT_ASKED


def _of(bits: int) -> tuple[Operation, ...]:
    return tuple(operation for operation in Operation if bits >> operation & 1)


TOPIC: Final = _of(TOPIC_OPERATIONS)
GROUP: Final = _of(GROUP_OPERATIONS)
CLUSTER: Final = _of(CLUSTER_OPERATIONS)


def _permitted(call: HostCall[Q], operations: Iterable[Operation], resource: Resource, name: str) -> int:
    return sum(
        1 << operation for operation in operations if call.may(Requirement(operation, resource), name, quiet=True)
    )


def topic_operations(call: HostCall[Q], name: str) -> int:
    """Returns the operations that the client may do on a topic."""
    return _permitted(call, TOPIC, Resource.TOPIC, name)


def group_operations(call: HostCall[Q], name: str) -> int:
    """Returns the operations that the client may do on a group."""
    return _permitted(call, GROUP, Resource.GROUP, name)


def cluster_operations(call: HostCall[Q]) -> int:
    """Returns the operations that the client may do on the cluster; none for who may not describe it."""
    return _permitted(call, CLUSTER, Resource.CLUSTER, CLUSTER_NAME) if call.may(DESCRIBE_CLUSTER) else 0
