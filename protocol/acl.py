"""The codes of access control in messages and records: operations, resources, patterns and permissions.

Source: org.apache.kafka.common.acl and org.apache.kafka.common.resource.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

ANY: Final = 1
"""The code that matches every resource type, pattern type, operation or permission in a filter."""

ALL_OPERATIONS: Final = 2
CLUSTER_NAME: Final = "kafka-cluster"
"""The resource name of the cluster."""


class Operation(IntEnum):
    """An operation (org.apache.kafka.common.acl.AclOperation, by its codes)."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Resource(IntEnum):
    """The type of a resource (org.apache.kafka.common.resource.ResourceType, by its codes)."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The type of a resource pattern (org.apache.kafka.common.resource.PatternType). Only filters use MATCH."""

    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """The permission of an entry: deny or allow (org.apache.kafka.common.acl.AclPermissionType)."""

    DENY = 2
    ALLOW = 3


NAMES: Final = {
    "resourceType": {ANY: "ANY", **{code.value: code.name for code in Resource}},
    "patternType": {ANY: "ANY", **{code.value: code.name for code in PatternType}},
    "operation": {ANY: "ANY", ALL_OPERATIONS: "ALL", **{code.value: code.name for code in Operation}},
    "permissionType": {ANY: "ANY", **{code.value: code.name for code in Permission}},
}
"""The names of the codes of each kind. Every other code is UNKNOWN."""


def code_name(kind: str, code: int) -> str:
    """Returns the name of a code, or UNKNOWN."""
    return NAMES[kind].get(code, "UNKNOWN")
