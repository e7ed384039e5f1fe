"""The authorizer by access control entries in the cluster's metadata (Kafka's StandardAuthorizer).

Decisions are remembered for each connection until an entry changes: most clients repeat the same operations.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from broker.exchange.audit import ADMINISTRATION, AuditLog
from broker.exchange.context import Context
from coordinator.cluster.changes import Delta, KeptChanged
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.security.acl import entry_of
from coordinator.cluster.security.acl_index import AclIndex, Actor
from protocol.acl import Operation, Resource
from protocol.metadata_records.security import AccessControlEntryRecord

MAX_DECISIONS: Final = 4096
"""Maximum of remembered decisions for a connection: some hundred kilobytes. With more, the authorizer starts over."""


class StandardAuthorizer:
    """Decides by the entries of an image, except for super users."""

    def __init__(self, super_users: Container[str], *, allows_unknown: bool, audit: AuditLog) -> None:
        """`allows_unknown`: everything is allowed on a resource without entries."""
        self._super_users = super_users
        self._audit = audit
        self._index = AclIndex(allows_unknown=allows_unknown)
        self._version = 1
        """Increases with each change of the entries; no connection has decisions of version 0."""

    def follow(self, loader: MetadataLoader) -> None:
        """Reads the entries of the image, and follows all later changes."""
        image = loader.image
        for record in image.other_records.values():
            if isinstance(record, AccessControlEntryRecord):
                self._index.set(record.id, entry_of(record))
        loader.subscribe(lambda delta: self._changed(image, delta))

    def _changed(self, image: Image, delta: Delta) -> None:
        for change in delta.changes:
            if isinstance(change, KeptChanged) and change.key[0] == "acl":
                self._update(image, change.key)

    def _update(self, image: Image, key: tuple[object, ...]) -> None:
        record = image.other_records.get(key)
        self._version += 1
        if isinstance(record, AccessControlEntryRecord):
            self._index.set(record.id, entry_of(record))
        elif isinstance(entry_id := key[1], bytes):
            self._index.remove(entry_id)

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
            is_allowed = connection.decisions[key] = self._decide(context, operation, resource, name)
        if not quiet:
            self._audit.decided(context, operation, resource, name, is_allowed=is_allowed)
        return is_allowed

    def _decide(self, context: Context, operation: Operation, resource: Resource, name: str) -> bool:
        principal = str(context.principal)
        if principal in self._super_users:
            return True
        return self._index.allows(Actor(principal, context.connection.ip), operation, resource, name)

    def allows_some(self, context: Context, operation: Operation, resource: Resource) -> bool:
        """True if the client may do the operation on some resource of the type."""
        principal = str(context.principal)
        if principal in self._super_users:
            return True
        is_allowed = self._index.allows_some(Actor(principal, context.connection.ip), operation, resource)
        if not is_allowed:
            self._audit.decided(context, operation, resource, "*", is_allowed=False)
        return is_allowed
