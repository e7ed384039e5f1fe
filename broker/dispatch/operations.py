"""The operations that a client may do on a resource, as bit fields in responses (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from broker.dispatch.call import Call
from broker.request.authorisation import CLUSTER_NAME, DESCRIBE_CLUSTER, Operation, Requirement, Resource

Q = TypeVar("Q")

NOT_ASKED: Final = -0x80000000

_CONFIGS: Final = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
OPERATIONS: Final[Mapping[Resource, tuple[Operation, ...]]] = {
    Resource.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE,
        *_CONFIGS,
    ),
    Resource.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE, *_CONFIGS),
    Resource.CLUSTER: (
        Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION, *_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}  # fmt: skip


def _bits(operations: Iterable[Operation]) -> int:
    return sum(1 << operation for operation in operations)


ALL: Final = {resource: _bits(operations) for resource, operations in OPERATIONS.items()}


def _permitted(call: Call[Q], resource: Resource, name: str) -> int:
    if call.host.authorizer is None:
        return ALL[resource]
    return _bits(
        operation for operation in OPERATIONS[resource] if call.may(Requirement(operation, resource), name, quiet=True)
    )


def group_operations(call: Call[Q], name: str, is_requested: bool) -> int:
    """Returns the operations that the client may do on a group, if they were requested."""
    return _permitted(call, Resource.GROUP, name) if is_requested else NOT_ASKED


def topic_operations(call: Call[Q], name: str, is_requested: bool) -> int:
    """Returns the operations that the client may do on a topic, if they were requested."""
    return _permitted(call, Resource.TOPIC, name) if is_requested else NOT_ASKED


def cluster_operations(call: Call[Q], is_requested: bool) -> int:
    """Returns the operations that the client may do on the cluster, if they were requested: none without DESCRIBE."""
    if not is_requested:
        return NOT_ASKED
    return _permitted(call, Resource.CLUSTER, CLUSTER_NAME) if call.may(DESCRIBE_CLUSTER) else 0
