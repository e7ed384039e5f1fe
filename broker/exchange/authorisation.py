"""The permissions that requests require, and the code that checks them.

Every row of the table of APIs says what its requests require. If that is one operation on the cluster, the dispatcher
checks it before it calls the handler; otherwise the handler checks each resource that its request names, with
`HostCall.may`, or its guard does (broker/guards). Without an authorizer everything is allowed.
Source: the table "Operations and Resources on Protocols" of Apache Kafka's documentation; org.apache.kafka.common.acl.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from broker.exchange.context import Context
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
ALTER_CONFIGS_GROUP: Final = Requirement(Operation.ALTER_CONFIGS, Resource.GROUP)
DELETE_GROUP: Final = Requirement(Operation.DELETE, Resource.GROUP)
DESCRIBE_GROUP: Final = Requirement(Operation.DESCRIBE, Resource.GROUP)
DESCRIBE_CONFIGS_GROUP: Final = Requirement(Operation.DESCRIBE_CONFIGS, Resource.GROUP)
READ_GROUP: Final = Requirement(Operation.READ, Resource.GROUP)
ALTER_TOPIC: Final = Requirement(Operation.ALTER, Resource.TOPIC)
ALTER_CONFIGS_TOPIC: Final = Requirement(Operation.ALTER_CONFIGS, Resource.TOPIC)
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


class Requires(NamedTuple):
    """The permissions that a row of the table of APIs requires: checked by its handler, and by the dispatcher."""

    by_handler: tuple[Requirement, ...] = ()
    """Required for each resource that the request names; the handler checks."""
    of_cluster: Requirement | None = None
    """Required for the request as a whole; the dispatcher checks, and answers CLUSTER_AUTHORIZATION_FAILED."""

    def __str__(self) -> str:
        whole = () if self.of_cluster is None else (self.of_cluster,)
        return ", ".join(map(str, (*whole, *self.by_handler))) or "nothing"


def by_handler(*requirements: Requirement) -> Requires:
    """Returns the requirements of a row whose handler checks them, for each resource that its request names."""
    return Requires(by_handler=requirements)


def of_cluster(requirement: Requirement) -> Requires:
    """Returns the requirement of a row that the dispatcher checks, for the request as a whole."""
    return Requires(of_cluster=requirement)


NOTHING: Final = Requires()
"""No permission: any client may send the request, before authentication too."""


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


class AllowEveryone:
    """Allows everything: the authorizer of a broker that has none configured."""

    def allows(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, quiet: bool = False
    ) -> bool:
        return True

    def allows_some(self, context: Context, operation: Operation, resource: Resource) -> bool:
        return True
