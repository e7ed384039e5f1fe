"""The permissions that requests require, and the code that checks them.

Every row of the table of APIs has a rule, which the dispatcher applies before it calls the handler
(broker/dispatch/rules.py). Without an authorizer everything is allowed, and no rule is applied.
Source: the table "Operations and Resources on Protocols" of Apache Kafka's documentation; org.apache.kafka.common.acl.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from broker.request.context import Context
from protocol.acl import CLUSTER_NAME as CLUSTER_NAME
from protocol.acl import Operation as Operation
from protocol.acl import Resource as Resource


class Requirement(NamedTuple):
    """An operation on a resource type."""

    operation: Operation
    resource: Resource

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource.name}"


ALTER_CLUSTER: Final = Requirement(Operation.ALTER, Resource.CLUSTER)
ALTER_CONFIGS_CLUSTER: Final = Requirement(Operation.ALTER_CONFIGS, Resource.CLUSTER)
CLUSTER_ACTION_CLUSTER: Final = Requirement(Operation.CLUSTER_ACTION, Resource.CLUSTER)
CREATE_CLUSTER: Final = Requirement(Operation.CREATE, Resource.CLUSTER)
DESCRIBE_CLUSTER: Final = Requirement(Operation.DESCRIBE, Resource.CLUSTER)
DESCRIBE_CONFIGS_CLUSTER: Final = Requirement(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
IDEMPOTENT_WRITE_CLUSTER: Final = Requirement(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)
DELETE_GROUP: Final = Requirement(Operation.DELETE, Resource.GROUP)
DESCRIBE_GROUP: Final = Requirement(Operation.DESCRIBE, Resource.GROUP)
READ_GROUP: Final = Requirement(Operation.READ, Resource.GROUP)
ALTER_TOPIC: Final = Requirement(Operation.ALTER, Resource.TOPIC)
CREATE_TOPIC: Final = Requirement(Operation.CREATE, Resource.TOPIC)
DELETE_TOPIC: Final = Requirement(Operation.DELETE, Resource.TOPIC)
DESCRIBE_TOPIC: Final = Requirement(Operation.DESCRIBE, Resource.TOPIC)
DESCRIBE_CONFIGS_TOPIC: Final = Requirement(Operation.DESCRIBE_CONFIGS, Resource.TOPIC)
READ_TOPIC: Final = Requirement(Operation.READ, Resource.TOPIC)
WRITE_TOPIC: Final = Requirement(Operation.WRITE, Resource.TOPIC)
CREATE_TOKENS_USER: Final = Requirement(Operation.CREATE_TOKENS, Resource.USER)
DESCRIBE_DELEGATION_TOKEN: Final = Requirement(Operation.DESCRIBE, Resource.DELEGATION_TOKEN)
DESCRIBE_TOKENS_USER: Final = Requirement(Operation.DESCRIBE_TOKENS, Resource.USER)
DESCRIBE_TRANSACTIONAL_ID: Final = Requirement(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID)
DELETE_CLUSTER: Final = Requirement(Operation.DELETE, Resource.CLUSTER)
WRITE_TRANSACTIONAL_ID: Final = Requirement(Operation.WRITE, Resource.TRANSACTIONAL_ID)


@dataclass(frozen=True, slots=True)
class AuthorizationRule:
    """The authorization of an API's requests: each row of the table of APIs has one."""

    requirements: tuple[Requirement, ...]
    """The operations that a client must be authorized for."""
    how: str
    """The rule in words, for the documentation."""
    answer: Callable[[Any, Any], Coroutine[Any, Any, Any]] | None = None
    """(call, its handler) → the response; the handler answers the parts that the client is authorized for. None if
    there is nothing to check before the handler."""
    always: bool = False
    """True if the rule also validates the request, and therefore applies without an authorizer."""

    def __str__(self) -> str:
        return ", ".join(map(str, self.requirements)) or "nothing"


PUBLIC: Final = AuthorizationRule((), "no authorization")
"""No permission: any client may send the request, before authentication too."""


def inside(how: str, *requirements: Requirement) -> AuthorizationRule:
    """Returns the rule of an API whose handler checks the requirements itself, with `Call.may`; `how` describes the
    check."""
    return AuthorizationRule(requirements, how)


class Authorizer(Protocol):
    """Decides which operations a client may perform (org.apache.kafka.server.authorizer.Authorizer)."""

    def allows(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, quiet: bool = False
    ) -> bool:
        """True if the client may do the operation on the resource; `quiet` keeps a check that only filters an answer
        out of the audit log."""
        ...

    def allows_some(self, context: Context, operation: Operation, resource: Resource) -> bool:
        """True if the client may do the operation on some resource of the type."""
        ...
