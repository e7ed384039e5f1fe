"""The authorizer by ACLs in the cluster's metadata (Kafka's StandardAuthorizer).

Decisions are remembered for each connection until an ACL changes, because most clients repeat the same operations.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from broker.request.audit import ADMINISTRATION, AuditLog
from broker.request.context import Context
from coordinator.cluster.changes import AclChanged, Delta
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.security.acls import Actor
from protocol.acl import Operation, Resource

MAX_DECISIONS: Final = 4096
"""Maximum number of remembered decisions for a connection, some hundred kilobytes. At the limit, all are forgotten."""


class StandardAuthorizer:
    """Decides by the entries of the loader's image, except for super users."""

    def __init__(
        self,
        loader: MetadataLoader,
        super_users: Container[str],
        *,
        allows_unknown: bool,
        audit: AuditLog,
        is_loaded: Callable[[], bool],
    ) -> None:
        """With `allows_unknown` every operation is allowed on a resource without entries. Until `is_loaded` returns
        True, only super users may do anything (AuthorizerNotReadyException)."""
        self._image = loader.image
        self._super_users = super_users
        self._audit = audit
        self._allows_unknown = allows_unknown
        self._is_loaded = is_loaded
        self._version = 1
        """Increases with each change of the entries; no connection has decisions of version 0."""
        loader.subscribe(self._changed)

    def _changed(self, delta: Delta) -> None:
        if delta.has(AclChanged):
            self._version += 1

    def allows(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, quiet: bool = False
    ) -> bool:
        """True if the client may do the operation on the resource."""
        connection = context.connection
        is_stale = connection.decided_by != self._version or connection.decided_for is not connection.principal
        if is_stale or len(connection.decisions) >= MAX_DECISIONS:
            connection.decisions = {}
            connection.decided_by, connection.decided_for = self._version, connection.principal
        key = (operation, resource, name)
        is_allowed = connection.decisions.get(key)
        if is_allowed and operation not in ADMINISTRATION:
            return True
        if is_allowed is None:
            if not self._is_loaded():  # and remembers nothing
                return str(context.principal) in self._super_users
            is_allowed = connection.decisions[key] = self._decide(context, operation, resource, name)
        if not quiet:
            self._audit.decided(context, operation, resource, name, is_allowed=is_allowed)
        return is_allowed

    def _decide(self, context: Context, operation: Operation, resource: Resource, name: str) -> bool:
        principal = str(context.principal)
        if principal in self._super_users:
            return True
        actor = Actor(principal, context.connection.ip)
        return self._image.acls.allows(actor, operation, resource, name, allows_unknown=self._allows_unknown)

    def allows_some(self, context: Context, operation: Operation, resource: Resource) -> bool:
        """True if the client may do the operation on some resource of the type."""
        principal = str(context.principal)
        if principal in self._super_users:
            return True
        if not self._is_loaded():
            return False
        actor = Actor(principal, context.connection.ip)
        is_allowed = self._image.acls.allows_some(actor, operation, resource, allows_unknown=self._allows_unknown)
        if not is_allowed:
            self._audit.decided(context, operation, resource, "*", is_allowed=False)
        return is_allowed
