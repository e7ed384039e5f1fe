"""Decides on CreateAcls and DeleteAcls, and answers DescribeAcls.

Source: Kafka's AclApis, AclControlManager, and the checks in its request classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator.cluster.image import Image
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.rejections import MAX_RECORDS, error_message, too_large
from coordinator.cluster.security.acl import AccessControlEntry, EntryFilter, record_of
from coordinator.cluster.security.acls import Acls
from coordinator.cluster.security.hosts import CIDR_METADATA_VERSION, parse_network
from coordinator.engine.result import Ticket, answered
from protocol.acl import ANY, CLUSTER_NAME, PatternType, Permission, Resource, code_name
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import create_acls as create
from protocol.messages import delete_acls as delete
from protocol.messages import describe_acls as describe
from protocol.metadata_records.security import RemoveAccessControlEntryRecord
from protocol.types import Uuid

FIRST_PREFIXED_VERSION: Final = 1

MAX_COMPARISONS: Final = 1_000_000
"""Maximum number of comparisons of filters with entries in a DeleteAcls. They take a thread about a second, and other
changes of the cluster wait for it. The answer may repeat an entry for each filter."""

IdentifiedEntry = tuple[Uuid, AccessControlEntry]


def invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def create_acls(
    image: Image,
    request: create.CreateAclsRequest,
    ticket: Ticket[create.CreateAclsResponse],
    new_uuid: Callable[[], Uuid],
) -> ClusterResult:
    """Returns the decision, which adds or rejects each entry separately; an entry that already exists is not added
    again."""
    existing = set(image.acls)
    records: list[MetadataRecord] = []
    results = []
    for creation in request.creations:
        try:
            entry = _new_entry(creation)
            _check_host(entry.host, image.metadata_version)
        except KafkaError as error:
            results.append(create.AclCreationResult(error_code=error.code, error_message=error_message(error)))
            continue
        if entry not in existing:
            existing.add(entry)
            records.append(record_of(new_uuid(), entry))
        results.append(create.AclCreationResult(error_code=ErrorCode.NONE, error_message=""))
    if len(records) > MAX_RECORDS:
        raise too_large()
    return answered(ticket, create.CreateAclsResponse(results=results), records)


def _new_entry(creation: create.AclCreation) -> AccessControlEntry:
    """Returns the entry of a creation. Raises KafkaError(INVALID_REQUEST)."""
    kind, name = creation.resource_type, creation.resource_name
    if kind == Resource.CLUSTER and name != CLUSTER_NAME:
        raise invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise invalid("Invalid empty resource name")
    if (kind_name := code_name("resourceType", kind)) in ("UNKNOWN", "ANY"):
        raise invalid(f"Invalid resourceType {kind_name}")
    if creation.resource_pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise invalid(f"Invalid patternType {code_name('patternType', creation.resource_pattern_type)}")
    if (operation := code_name("operation", creation.operation)) in ("UNKNOWN", "ANY"):
        raise invalid(f"Invalid operation {operation}")
    if creation.permission_type not in (Permission.DENY, Permission.ALLOW):
        raise invalid(f"Invalid permissionType {code_name('permissionType', creation.permission_type)}")
    if ":" not in creation.principal:
        reason = "no colon is present separating the principal type from the principal name"
        raise invalid(f"Could not parse principal from `{creation.principal}` ({reason})")
    return AccessControlEntry(
        kind, name, creation.resource_pattern_type, creation.principal, creation.host, creation.operation,
        creation.permission_type,
    )  # fmt: skip


def _check_host(host: str, metadata_version: int) -> None:
    """Raises KafkaError(INVALID_REQUEST, UNSUPPORTED_VERSION) if a new entry can't have this host."""
    if not host:
        raise invalid("Host pattern cannot be null or empty")
    if "/" not in host:
        return
    if metadata_version < CIDR_METADATA_VERSION:
        message = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    try:
        parse_network(host)
    except ValueError as error:
        raise invalid(f"Invalid CIDR notation '{host}': {error}") from None


def _filter(requested: delete.DeleteAclsFilter | describe.DescribeAclsRequest, version: int) -> EntryFilter:
    """Returns the filter of a request; before version 1, all patterns are literal."""
    pattern_type = requested.pattern_type_filter
    if version < FIRST_PREFIXED_VERSION and pattern_type == ANY:
        pattern_type = PatternType.LITERAL
    return EntryFilter(
        requested.resource_type_filter, requested.resource_name_filter, pattern_type, requested.principal_filter,
        requested.host_filter, requested.operation, requested.permission_type,
    )  # fmt: skip


class Candidates:
    """The entries with which the filters of a request are compared: those with the filter's name or principal, or
    all."""

    def __init__(self, acls: Acls) -> None:
        self._all = list(acls.items())
        self._by_name: dict[str, list[IdentifiedEntry]] = {}
        self._by_principal: dict[str, list[IdentifiedEntry]] = {}
        for item in self._all:
            _, entry = item
            self._by_name.setdefault(entry.resource_name, []).append(item)
            self._by_principal.setdefault(entry.principal, []).append(item)
        self._compared = 0

    def of(self, entry_filter: EntryFilter) -> list[IdentifiedEntry]:
        """Returns the entries that the filter may match, in their order. Raises KafkaError(POLICY_VIOLATION) once the
        filters had more than MAX_COMPARISONS."""
        name, principal = entry_filter.resource_name, entry_filter.principal
        found = self._all
        if name is not None and entry_filter.pattern_type != PatternType.MATCH:
            found = self._by_name.get(name, [])
        elif principal is not None:
            found = self._by_principal.get(principal, [])
        self._compared += len(found)
        if self._compared > MAX_COMPARISONS:
            raise too_large()
        return found


def delete_acls(
    image: Image, request: delete.DeleteAclsRequest, ticket: Ticket[delete.DeleteAclsResponse], version: int
) -> ClusterResult:
    """Returns the decision. The result of each filter has all entries that it matches, including entries that another
    filter deletes with it. Raises KafkaError(POLICY_VIOLATION) if there is too much to compare or to delete.
    """
    filters = [_filter(requested, version) for requested in request.filters]
    candidates = Candidates(image.acls)
    deleted: dict[Uuid, None] = {}
    results = []
    for entry_filter in filters:
        if (part := entry_filter.unknown_part) is not None:
            message = f"Unknown {part}."
            results.append(
                delete.DeleteAclsFilterResult(
                    error_code=ErrorCode.INVALID_REQUEST, error_message=message, matching_acls=[]
                )
            )
            continue
        matching = [(entry_id, entry) for entry_id, entry in candidates.of(entry_filter) if entry_filter.matches(entry)]
        deleted |= dict.fromkeys(entry_id for entry_id, _ in matching)
        results.append(
            delete.DeleteAclsFilterResult(
                error_code=0, error_message=None, matching_acls=[_deleted(entry) for _, entry in matching]
            )
        )
        if len(deleted) > MAX_RECORDS:
            raise too_large()
    records = [RemoveAccessControlEntryRecord(id=entry_id) for entry_id in deleted]
    return answered(ticket, delete.DeleteAclsResponse(filter_results=results), records)


def _deleted(entry: AccessControlEntry) -> delete.DeleteAclsMatchingAcl:
    return delete.DeleteAclsMatchingAcl(
        error_code=0,
        error_message=None,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


class DescribedAcls:
    """The answer to a DescribeAcls: the entries that match, grouped by pattern."""

    def __init__(self, request: describe.DescribeAclsRequest, version: int) -> None:
        """Raises KafkaError(INVALID_REQUEST)."""
        self._filter = _filter(request, version)
        if (part := self._filter.unknown_part) is not None:
            raise invalid(f"Unknown {part}.")
        self._resources: dict[tuple[int, str, int], describe.DescribeAclsResource] = {}

    def add(self, entry: AccessControlEntry) -> bool:
        """Adds the entry if it matches; returns True then."""
        if not self._filter.matches(entry):
            return False
        kind, name, pattern = key = entry.resource_type, entry.resource_name, entry.pattern_type
        resource = self._resources.get(key)
        if resource is None:
            resource = self._resources[key] = describe.DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=[]
            )
        resource.acls.append(_description(entry))
        return True

    @property
    def response(self) -> describe.DescribeAclsResponse:
        return describe.DescribeAclsResponse(error_code=0, error_message="", resources=list(self._resources.values()))


def _description(entry: AccessControlEntry) -> describe.AclDescription:
    return describe.AclDescription(
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
