"""`odradek acl`."""

from __future__ import annotations

import argparse
from typing import Final, NamedTuple

from cli.actions import Actions
from cli.flags import GROUP, TOPIC, TRANSACTIONAL_ID, USER, YES
from commands.errors import CommandError, explain, misuse, raise_if
from commands.printing import Row
from commands.session import Session
from protocol.acl import ANY, CLUSTER_NAME, NAMES, PatternType, Permission, Resource
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

ROLES_HELP: Final = """\
--producer adds the operations of a producer: write, describe and create on the topic, write and describe on the
transactional id. --consumer adds those of a consumer: read and describe on the topic, read on the group."""

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
            "odradek acl add --allow User:shop --producer --topic orders --transactional-id shop-1",
            "odradek acl add --allow User:billing --consumer --topic orders --group billing",
        ),
        more=ROLES_HELP,
    )
    actions.add(
        "delete",
        "delete the entries that a filter matches",
        delete,
        options=_delete_options,
        examples=("odradek acl delete --topic orders --principal User:ana --yes",),
    )


def _resource_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    resource = parser if several else parser.add_mutually_exclusive_group()
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
    _resource_options(parser, several=True)
    principal = parser.add_mutually_exclusive_group(required=True)
    principal.add_argument("--allow", metavar="User:NAME", help="principal that may do the operations")
    principal.add_argument("--deny", metavar="User:NAME", help="principal that may not do the operations")
    words = [*OPERATIONS]
    operations = parser.add_mutually_exclusive_group(required=True)
    operations.add_argument("--operation", action="append", choices=words, metavar="OPERATION",
                            help=f"repeatable: {', '.join(words)}")  # fmt: skip
    operations.add_argument("--producer", action="store_true", help="the operations of a producer")
    operations.add_argument("--consumer", action="store_true", help="the operations of a consumer")


def word(name: str) -> str:
    """Returns the name of a code as it is on the command line."""
    return name.lower().replace("_", "-")


OPERATIONS: Final = {word(name): code for code, name in NAMES["operation"].items() if code != ANY}
"""The operations of entries, by their names on the command line."""


class Grant(NamedTuple):
    """An operation on a resource."""

    kind: Resource
    name: str
    operation: int


PRODUCER: Final = {
    Resource.TOPIC: ("write", "describe", "create"),
    Resource.TRANSACTIONAL_ID: ("write", "describe"),
}
CONSUMER: Final = {Resource.TOPIC: ("read", "describe"), Resource.GROUP: ("read",)}
"""The operations of a role, by resource (org.apache.kafka.tools.AclCommand)."""


def _grants(options: argparse.Namespace) -> list[Grant]:
    """Returns the operations that the options name. Raises CommandError."""
    named = {
        kind: name
        for kind in (Resource.TOPIC, Resource.GROUP, Resource.TRANSACTIONAL_ID, Resource.USER)
        if (name := getattr(options, kind.name.lower())) is not None
    }
    if options.cluster:
        named[Resource.CLUSTER] = CLUSTER_NAME
    if not (options.producer or options.consumer):
        if len(named) != 1:
            raise misuse("name one resource with --topic, --group, --transactional-id, --user or --cluster")
        return [Grant(kind, name, OPERATIONS[word]) for kind, name in named.items() for word in options.operation]
    role, operations, needed = (
        ("--producer", PRODUCER, {Resource.TOPIC}) if options.producer else ("--consumer", CONSUMER, {*CONSUMER})
    )
    if missing := sorted(needed - named.keys()):
        raise misuse(f"{role} needs --{word(missing[0].name)}")
    if other := sorted(named.keys() - operations.keys()):
        raise misuse(f"{role} has no operation on --{word(other[0].name)}")
    return [Grant(kind, name, OPERATIONS[text]) for kind, name in named.items() for text in operations[kind]]


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
    grants = _grants(options)
    principal = _principal(options.allow or options.deny, "--allow" if options.allow else "--deny") or ""
    permission = Permission.ALLOW if options.allow else Permission.DENY
    creations = [
        AclCreation(
            resource_type=grant.kind,
            resource_name=grant.name,
            resource_pattern_type=_pattern(options, PatternType.LITERAL),
            principal=principal,
            host=options.host or "*",
            operation=grant.operation,
            permission_type=permission,
        )
        for grant in grants
    ]
    answer = await session.cluster.controller(CreateAclsRequest(creations=creations), CreateAclsResponse)
    rows: list[Row] = []
    for entry, result in zip(creations, answer.results, strict=True):
        row = _row(
            entry.resource_type,
            entry.resource_name,
            entry.resource_pattern_type,
            principal,
            entry.host,
            entry.operation,
            entry.permission_type,
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
