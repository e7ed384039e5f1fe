"""Authorizes by all access control entries, with an index so that a decision reads few of them.

A DENY entry overrides any ALLOW entry, however specific. Operations that imply other operations do so only in ALLOW
entries.

Source: Kafka's StandardAuthorizerData, and authorizeByResourceType of Authorizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from coordinator.cluster.changes import AclChanged
from coordinator.cluster.security.acl import EVERYBODY, WILDCARD, AccessControlEntry
from coordinator.cluster.security.hosts import matches
from protocol.acl import ALL_OPERATIONS, Operation, PatternType, Permission, Resource
from protocol.types import Uuid

IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""For each operation, the operations whose ALLOW entries allow it too."""


NO_ENTRIES: Final[Mapping[Uuid, AccessControlEntry]] = MappingProxyType({})


class Actor(NamedTuple):
    """The client: a principal, as `User:name`, and its address in canonical spelling."""

    principal: str
    host: str

    def is_meant_by(self, entry: AccessControlEntry) -> bool:
        """True if the entry is about this principal, and its host has this address."""
        return entry.principal in (self.principal, EVERYBODY) and matches(entry.host, self.host)


class Acls:
    """The access control entries of an image: by their ids and, from the first decision on, by their patterns."""

    def __init__(self, entries: Mapping[Uuid, AccessControlEntry] = NO_ENTRIES) -> None:
        self._entries = dict(entries)
        self._is_indexed = False
        """False until the first decision: controllers, and brokers without an authorizer, make none."""
        self._literal: dict[tuple[int, str], list[AccessControlEntry]] = {}
        self._prefixed: dict[int, dict[str, list[AccessControlEntry]]] = {}
        self._lengths: dict[int, list[int]] = {}
        """The lengths of prefix patterns, in ascending order, by resource type; computed by the first decision after a
        change."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[AccessControlEntry]:
        """Yields the entries in the order in which they were added."""
        return iter(self._entries.values())

    def items(self) -> Iterable[tuple[Uuid, AccessControlEntry]]:
        """Returns the entries with their ids."""
        return self._entries.items()

    def get(self, entry_id: Uuid) -> AccessControlEntry | None:
        return self._entries.get(entry_id)

    def copy(self) -> Acls:
        """Returns the same entries, without an index."""
        return Acls(self._entries)

    def set(self, entry_id: Uuid, entry: AccessControlEntry) -> AclChanged:
        """Adds an entry, or replaces the entry of the id."""
        self.remove(entry_id)
        self._entries[entry_id] = entry
        if self._is_indexed:
            self._index(entry)
        return AclChanged(entry_id)

    def _index(self, entry: AccessControlEntry) -> None:
        if entry.pattern_type == PatternType.LITERAL:
            self._literal.setdefault((entry.resource_type, entry.resource_name), []).append(entry)
        elif entry.pattern_type == PatternType.PREFIXED:
            self._prefixed.setdefault(entry.resource_type, {}).setdefault(entry.resource_name, []).append(entry)
            self._lengths.pop(entry.resource_type, None)

    def remove(self, entry_id: Uuid) -> AclChanged:
        """Removes the entry of an id, if there is one."""
        entry = self._entries.pop(entry_id, None)
        if entry is not None and self._is_indexed:
            self._unindex(entry)
        return AclChanged(entry_id)

    def _unindex(self, entry: AccessControlEntry) -> None:
        if entry.pattern_type == PatternType.LITERAL:
            key = entry.resource_type, entry.resource_name
            self._literal[key].remove(entry)
            if not self._literal[key]:
                del self._literal[key]
        elif entry.pattern_type == PatternType.PREFIXED:
            by_prefix = self._prefixed[entry.resource_type]
            by_prefix[entry.resource_name].remove(entry)
            if not by_prefix[entry.resource_name]:
                del by_prefix[entry.resource_name]
                self._lengths.pop(entry.resource_type, None)

    def _about(self, resource: Resource, name: str) -> Iterator[list[AccessControlEntry]]:
        """Yields the entries whose patterns match the resource."""
        if not self._is_indexed:
            self._is_indexed = True
            for entry in self._entries.values():
                self._index(entry)
        if (literal := self._literal.get((resource, name))) is not None:
            yield literal
        if name != WILDCARD and (everything := self._literal.get((resource, WILDCARD))) is not None:
            yield everything
        by_prefix = self._prefixed.get(resource)
        if by_prefix:
            if resource not in self._lengths:
                self._lengths[resource] = sorted({*map(len, by_prefix)})
            for length in self._lengths[resource]:
                if length > len(name):
                    return
                if (prefixed := by_prefix.get(name[:length])) is not None:
                    yield prefixed

    def allows(
        self, actor: Actor, operation: Operation, resource: Resource, name: str, *, allows_unknown: bool = False
    ) -> bool:
        """True if the actor may do the operation on the resource. `allows_unknown` is the decision if no entry is about
        the resource (allow.everyone.if.no.acl.found)."""
        implied_by = IMPLIED_BY.get(operation)
        is_known = is_allowed = False
        for entries in self._about(resource, name):
            is_known = True
            for entry in entries:
                if not actor.is_meant_by(entry):
                    continue
                is_named = entry.operation in (operation, ALL_OPERATIONS)
                if entry.permission_type != Permission.ALLOW:
                    if is_named:
                        return False
                elif is_named or (implied_by is not None and entry.operation in implied_by):
                    is_allowed = True
        return is_allowed if is_known else allows_unknown

    def allows_some(
        self, actor: Actor, operation: Operation, resource: Resource, *, allows_unknown: bool = False
    ) -> bool:
        """True if an entry allows the operation on a pattern of this resource type, and DENY entries don't cover the
        whole pattern. No resource has to exist."""
        if self.allows(actor, operation, resource, "hardcode", allows_unknown=allows_unknown):
            return True
        denied: set[tuple[int, str]] = set()
        allowed: list[AccessControlEntry] = []
        for entry in self._of_type(resource):
            if not actor.is_meant_by(entry) or entry.operation not in (operation, ALL_OPERATIONS):
                continue
            if entry.permission_type != Permission.DENY:
                allowed.append(entry)
            elif entry.is_wildcard:
                return False
            else:
                denied.add((entry.pattern_type, entry.resource_name))
        return any(entry.is_wildcard or not _is_covered(entry, denied) for entry in allowed)

    def _of_type(self, resource: Resource) -> Iterable[AccessControlEntry]:
        return (entry for entry in self._entries.values() if entry.resource_type == resource)


def _is_covered(entry: AccessControlEntry, denied: set[tuple[int, str]]) -> bool:
    """True if DENY entries cover everything that the entry allows."""
    name = entry.resource_name
    if entry.pattern_type == PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
