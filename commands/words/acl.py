"""`odradek acl`."""

from __future__ import annotations

import argparse
from typing import Final

from cli.actions import Actions
from cli.flags import GROUP, TOPIC, TRANSACTIONAL_ID, USER, YES
from commands.errors import CommandError, explain, misuse, raise_if
from commands.printing import Row
from commands.session import Session
from protocol.acl import ANY, CLUSTER_NAME, NAMES, PatternType, Permission, Resource
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

COLUMNS: Final = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


def declare(actions: Actions) -> None:
    actions.add(
        "list",
        "list access control entries",
        list_all,
        options=_filter_options,
        examples=("odradek acl list", "odradek acl list --topic orders --principal User:ana"),
    )
    actions.add(
        "add",
        "add entries that allow or deny operations",
        add,
        options=_add_options,
        examples=(
            "odradek acl add --allow User:ana --topic orders --operation read --operation describe",
            "odradek acl add --deny User:bob --topic pay --prefixed --operation all",
        ),
    )
    actions.add(
        "delete",
        "delete the entries that a filter matches",
        delete,
        options=_delete_options,
        examples=("odradek acl delete --topic orders --principal User:ana --yes",),
    )


def _resource_options(parser: argparse.ArgumentParser) -> None:
    resource = parser.add_mutually_exclusive_group()
    for flag in (TOPIC, GROUP, TRANSACTIONAL_ID, USER):
        flag.add(resource)
    resource.add_argument("--cluster", action="store_true", help="the cluster itself")
    parser.add_argument("--prefixed", action="store_true", help="the name is a prefix")
    parser.add_argument("--host", metavar="ADDRESS", help="address of the client")


def _filter_options(parser: argparse.ArgumentParser) -> None:
    _resource_options(parser)
    parser.add_argument("--principal", metavar="User:NAME", help="principal of the entries")


def _delete_options(parser: argparse.ArgumentParser) -> None:
    _filter_options(parser)
    YES.add(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    _resource_options(parser)
    principal = parser.add_mutually_exclusive_group(required=True)
    principal.add_argument("--allow", metavar="User:NAME", help="principal that may do the operations")
    principal.add_argument("--deny", metavar="User:NAME", help="principal that may not do the operations")
    words = [*OPERATIONS]
    parser.add_argument("--operation", action="append", choices=words, required=True, metavar="OPERATION",
                        help=f"repeatable: {', '.join(words)}")  # fmt: skip


def word(name: str) -> str:
    """Returns the name of a code as it is on the command line."""
    return name.lower().replace("_", "-")


OPERATIONS: Final = {word(name): code for code, name in NAMES["operation"].items() if code != ANY}
"""The operations of entries, by their names on the command line."""


def _resource(options: argparse.Namespace) -> tuple[int, str | None]:
    if options.cluster:
        return Resource.CLUSTER, CLUSTER_NAME
    for kind in (Resource.TOPIC, Resource.GROUP, Resource.TRANSACTIONAL_ID, Resource.USER):
        name = getattr(options, kind.name.lower())
        if name is not None:
            return kind, name
    return ANY, None


def _pattern(options: argparse.Namespace, default: int) -> int:
    return PatternType.PREFIXED if options.prefixed else default


def _principal(text: str | None, option: str) -> str | None:
    if text is not None and ":" not in text:
        raise misuse(f"{option} {text}: expected a type and a name, such as User:{text}")
    return text


def _row(resource: int, name: str, pattern: int, principal: str, host: str, operation: int, permission: int) -> Row:
    codes = zip(NAMES.values(), (resource, pattern, operation, permission), strict=True)
    kind, how, what, whether = (word(names[code]) if code in names else str(code) for names, code in codes)
    return dict(zip(COLUMNS, (kind, name, how, principal, host, what, whether), strict=True))


async def list_all(session: Session) -> None:
    options = session.options
    kind, name = _resource(options)
    request = DescribeAclsRequest(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=_pattern(options, ANY),
        principal_filter=_principal(options.principal, "--principal"),
        host_filter=options.host,
        operation=ANY,
        permission_type=ANY,
    )
    answer = await session.cluster.any(request, DescribeAclsResponse)
    raise_if("ACLs", answer.error_code, answer.error_message)
    rows = [
        _row(
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
    session.output.rows(COLUMNS, sorted(rows, key=str), empty="there are no ACLs")


async def add(session: Session) -> int:
    options = session.options
    kind, name = _resource(options)
    if name is None:
        raise misuse("name the resource with --topic, --group, --transactional-id, --user or --cluster")
    principal = _principal(options.allow or options.deny, "--allow" if options.allow else "--deny") or ""
    permission = Permission.ALLOW if options.allow else Permission.DENY
    creations = [
        AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=_pattern(options, PatternType.LITERAL),
            principal=principal,
            host=options.host or "*",
            operation=OPERATIONS[operation],
            permission_type=permission,
        )
        for operation in options.operation
    ]
    answer = await session.cluster.controller(CreateAclsRequest(creations=creations), CreateAclsResponse)
    rows: list[Row] = []
    for entry, result in zip(creations, answer.results, strict=True):
        row = _row(
            kind, name, entry.resource_pattern_type, principal, entry.host, entry.operation, entry.permission_type
        )
        error = explain(result.error_code, result.error_message) if result.error_code else None
        rows.append({**row, "error": error} if error else {**row, "result": "added"})
    return session.results(COLUMNS, rows)


async def delete(session: Session) -> int:
    options = session.options
    kind, name = _resource(options)
    principal = _principal(options.principal, "--principal")
    if name is None and principal is None:
        raise misuse("name the ACLs to delete with a resource or --principal")
    session.confirm([principal or name or ""], "to delete ACLs of")
    chosen = DeleteAclsFilter(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=_pattern(options, ANY),
        principal_filter=principal,
        host_filter=options.host,
        operation=ANY,
        permission_type=ANY,
    )
    answer = await session.cluster.controller(DeleteAclsRequest(filters=[chosen]), DeleteAclsResponse)
    rows: list[Row] = []
    for result in answer.filter_results:
        raise_if("ACLs", result.error_code, result.error_message)
        for acl in result.matching_acls:
            row = _row(
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
    if not rows:
        raise CommandError("no ACL matches")
    return session.results(COLUMNS, sorted(rows, key=str))
