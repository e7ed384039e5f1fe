"""Decides who may do what by all access control entries, indexed so that a decision looks at few of them.

An entry that denies wins over any that allow, however specific. Where an operation implies another, that holds for
entries that allow only. Source: Kafka's StandardAuthorizerData, and authorizeByResourceType of Authorizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from coordinator.cluster.security.acl import EVERYBODY, WILDCARD, AccessControlEntry
from protocol.acl import ALL_OPERATIONS, Operation, PatternType, Permission, Resource
from protocol.addresses import canonical

IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""The operations that an entry may allow to allow these too."""


class Actor(NamedTuple):
    """Who asks: a principal, as `User:name`, at an address in its canonical spelling."""

    principal: str
    host: str

    def is_meant_by(self, entry: AccessControlEntry) -> bool:
        """True where the entry is about this principal at this address."""
        return entry.principal in (self.principal, EVERYBODY) and canonical(entry.host) in (WILDCARD, self.host)


class AclIndex:
    """All entries, by their ids and by what they are about."""

    def __init__(self, *, allows_unknown: bool = False) -> None:
        """`allows_unknown` allows everybody what no entry is about (allow.everyone.if.no.acl.found)."""
        self._allows_unknown = allows_unknown
        self._entries: dict[bytes, AccessControlEntry] = {}
        self._literal: dict[tuple[int, str], list[AccessControlEntry]] = {}
        self._prefixed: dict[int, dict[str, list[AccessControlEntry]]] = {}
        self._lengths: dict[int, list[int]] = {}
        """The lengths of prefixes, ascending, by resource type."""

    def __len__(self) -> int:
        return len(self._entries)

    def set(self, entry_id: bytes, entry: AccessControlEntry) -> None:
        """Adds an entry, in place of one of the same id."""
        self.remove(entry_id)
        self._entries[entry_id] = entry
        if entry.pattern_type == PatternType.LITERAL:
            self._literal.setdefault((entry.resource_type, entry.resource_name), []).append(entry)
        elif entry.pattern_type == PatternType.PREFIXED:
            self._prefixed.setdefault(entry.resource_type, {}).setdefault(entry.resource_name, []).append(entry)
            self._measure(entry.resource_type)

    def remove(self, entry_id: bytes) -> None:
        """Removes the entry of an id, if there is one."""
        entry = self._entries.pop(entry_id, None)
        if entry is None:
            return
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
                self._measure(entry.resource_type)

    def _measure(self, resource_type: int) -> None:
        self._lengths[resource_type] = sorted({len(prefix) for prefix in self._prefixed[resource_type]})

    def _about(self, resource: Resource, name: str) -> Iterator[list[AccessControlEntry]]:
        """Yields the entries whose patterns match the resource."""
        if (literal := self._literal.get((resource, name))) is not None:
            yield literal
        if name != WILDCARD and (everything := self._literal.get((resource, WILDCARD))) is not None:
            yield everything
        by_prefix = self._prefixed.get(resource)
        if by_prefix:
            for length in self._lengths[resource]:
                if length > len(name):
                    return
                if (prefixed := by_prefix.get(name[:length])) is not None:
                    yield prefixed

    def allows(self, actor: Actor, operation: Operation, resource: Resource, name: str) -> bool:
        """True where the actor may do the operation on the resource."""
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
        return is_allowed if is_known else self._allows_unknown

    def allows_some(self, actor: Actor, operation: Operation, resource: Resource) -> bool:
        """True where the actor may do the operation on some resource of the type, there or not: an entry allows it for
        a pattern of which none that denies covers all."""
        if self.allows(actor, operation, resource, "hardcode"):
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
    """True where everything that the entry allows is denied."""
    name = entry.resource_name
    if entry.pattern_type == PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
