"""Access control entries (ACLs), and filters for them (org.apache.kafka.common.acl)."""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.acl import ANY, PatternType, code_name
from protocol.metadata_records.security import AccessControlEntryRecord
from protocol.types import Uuid

WILDCARD: Final = "*"
"""Any host, or as the name of a literal pattern, any resource of its type."""

EVERYBODY: Final = "User:*"


class AccessControlEntry(NamedTuple):
    """An entry that allows or denies an operation, on resources that match a pattern, to a principal at a host."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    """Type and name, such as `User:alice`."""
    host: str
    operation: int
    permission_type: int

    @property
    def is_wildcard(self) -> bool:
        """True if the entry applies to all resources of its type."""
        return self.pattern_type == PatternType.LITERAL and self.resource_name == WILDCARD


def entry_of(record: AccessControlEntryRecord) -> AccessControlEntry:
    """Returns the entry of a record."""
    return AccessControlEntry(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def record_of(entry_id: Uuid, entry: AccessControlEntry) -> AccessControlEntryRecord:
    """Returns the record of an entry."""
    return AccessControlEntryRecord(
        id=entry_id,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


class EntryFilter(NamedTuple):
    """The filter of a request; None matches any name, principal or host (AclBindingFilter)."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    @property
    def unknown_part(self) -> str | None:
        """Returns the name of the part that has an unknown code, as Kafka names it; None if all are known."""
        if "UNKNOWN" in (code_name("resourceType", self.resource_type), code_name("patternType", self.pattern_type)):
            return "patternFilter"
        if "UNKNOWN" in (
            code_name("operation", self.operation),
            code_name("permissionType", self.permission_type),
        ):
            return "entryFilter"
        return None

    def matches(self, entry: AccessControlEntry) -> bool:
        """True if the filter matches the entry."""
        return (
            self.resource_type in (ANY, entry.resource_type)
            and self._matches_name(entry)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (ANY, entry.operation)
            and self.permission_type in (ANY, entry.permission_type)
        )

    def _matches_name(self, entry: AccessControlEntry) -> bool:
        name = self.resource_name
        if self.pattern_type not in (ANY, PatternType.MATCH, entry.pattern_type):
            return False
        if name is None or name == entry.resource_name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if entry.pattern_type == PatternType.PREFIXED:
            return name.startswith(entry.resource_name)
        return entry.is_wildcard
