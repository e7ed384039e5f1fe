"""What a client may do, as bit fields in answers (KIP-430). Nothing is forbidden as long as there is no authorizer.

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


def group_operations(asked: bool) -> int:
    """All that can be done with a group, if that was asked."""
    return GROUP_OPERATIONS if asked else NOT_ASKED


def topic_operations(asked: bool) -> int:
    """All that can be done with a topic, if that was asked."""
    return TOPIC_OPERATIONS if asked else NOT_ASKED


def cluster_operations(asked: bool) -> int:
    """All that can be done with the cluster, if that was asked."""
    return CLUSTER_OPERATIONS if asked else NOT_ASKED
