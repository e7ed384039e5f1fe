"""A client's authorized operations, as bit fields in responses (KIP-430). All are authorized until there is an
authorizer.

The bits are the codes of org.apache.kafka.common.acl.AclOperation.
"""

from __future__ import annotations

NOT_ASKED = -0x80000000
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)


GROUP_OPERATIONS = _bits(READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)


def group_operations(is_requested: bool) -> int:
    """Returns the operations on a group, if they were requested."""
    return GROUP_OPERATIONS if is_requested else NOT_ASKED


def topic_operations(is_requested: bool) -> int:
    """Returns the operations on a topic, if they were requested."""
    return TOPIC_OPERATIONS if is_requested else NOT_ASKED


def cluster_operations(is_requested: bool) -> int:
    """Returns the operations on the cluster, if they were requested."""
    return CLUSTER_OPERATIONS if is_requested else NOT_ASKED
