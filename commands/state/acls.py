"""Access control entries: lists, adds and deletes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from commands.client.cluster_client import ClusterClient
from commands.errors import explain, raise_if
from commands.printing import Row
from protocol.acl import ANY, NAMES
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

ACL_COLUMNS: Final = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


def word(name: str) -> str:
    """Returns the name of a code as it is on the command line."""
    return name.lower().replace("_", "-")


OPERATIONS: Final = {word(name): code for code, name in NAMES["operation"].items() if code != ANY}
"""The operations of entries, by their names on the command line."""


class AclQuery(NamedTuple):
    """The entries to list or delete; None and ANY match everything."""

    kind: int = ANY
    name: str | None = None
    pattern: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY


def acl_row(resource: int, name: str, pattern: int, principal: str, host: str, operation: int, permission: int) -> Row:
    """Returns an entry as a row of ACL_COLUMNS."""
    codes = zip(NAMES.values(), (resource, pattern, operation, permission), strict=True)
    kind, how, what, whether = (word(names[code]) if code in names else str(code) for names, code in codes)
    return dict(zip(ACL_COLUMNS, (kind, name, how, principal, host, what, whether), strict=True))


async def acl_rows(cluster: ClusterClient, query: AclQuery) -> list[Row]:
    """Returns a row for each entry that matches. Raises CommandError."""
    request = DescribeAclsRequest(
        resource_type_filter=query.kind,
        resource_name_filter=query.name,
        pattern_type_filter=query.pattern,
        principal_filter=query.principal,
        host_filter=query.host,
        operation=query.operation,
        permission_type=query.permission,
    )
    answer = await cluster.any(request, DescribeAclsResponse)
    raise_if("ACLs", answer.error_code, answer.error_message)
    rows = [
        acl_row(
            entry.resource_type,
            entry.resource_name,
            entry.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for entry in answer.resources
        for acl in entry.acls
    ]
    return sorted(rows, key=str)


async def add_acls(cluster: ClusterClient, creations: Sequence[AclCreation]) -> list[Row]:
    """Adds entries. Returns a row with the result of each."""
    answer = await cluster.controller(CreateAclsRequest(creations=list(creations)), CreateAclsResponse)
    rows: list[Row] = []
    for entry, result in zip(creations, answer.results, strict=True):
        row = created_row(entry)
        error = explain(result.error_code, result.error_message) if result.error_code else None
        rows.append({**row, "error": error} if error else {**row, "result": "added"})
    return rows


def created_row(entry: AclCreation) -> Row:
    """Returns an entry to add as a row of ACL_COLUMNS."""
    return acl_row(
        entry.resource_type,
        entry.resource_name,
        entry.resource_pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )


async def delete_acls(cluster: ClusterClient, query: AclQuery) -> list[Row]:
    """Deletes the entries that match. Returns a row with the result of each. Raises CommandError."""
    chosen = DeleteAclsFilter(
        resource_type_filter=query.kind,
        resource_name_filter=query.name,
        pattern_type_filter=query.pattern,
        principal_filter=query.principal,
        host_filter=query.host,
        operation=query.operation,
        permission_type=query.permission,
    )
    answer = await cluster.controller(DeleteAclsRequest(filters=[chosen]), DeleteAclsResponse)
    rows: list[Row] = []
    for result in answer.filter_results:
        raise_if("ACLs", result.error_code, result.error_message)
        for acl in result.matching_acls:
            row = acl_row(
                acl.resource_type,
                acl.resource_name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            error = explain(acl.error_code, acl.error_message) if acl.error_code else None
            rows.append({**row, "error": error} if error else {**row, "result": "deleted"})
    return sorted(rows, key=str)
