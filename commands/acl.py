"""`odradek acl`."""

from __future__ import annotations

import argparse
from enum import IntEnum
from typing import Final

from commands.declaring import Actions, Session, add_yes
from commands.errors import CommandError, explain, misuse, raise_if
from commands.printing import Row
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


class AclResource(IntEnum):
    """Kinds of resources (org.apache.kafka.common.resource.ResourceType)."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclPattern(IntEnum):
    """How a resource is named (org.apache.kafka.common.resource.PatternType)."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Operations (org.apache.kafka.common.acl.AclOperation)."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Allowed or not (org.apache.kafka.common.acl.AclPermissionType)."""

    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME: Final = "kafka-cluster"
"""The one name of a cluster in ACLs."""

COLUMNS: Final = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


def declare(actions: Actions) -> None:
    actions.add(
        "list",
        "list who may do what",
        list_all,
        options=_filter_options,
        examples=("odradek acl list", "odradek acl list --topic orders --principal User:ana"),
    )
    actions.add(
        "add",
        "allow or deny something",
        add,
        options=_add_options,
        examples=(
            "odradek acl add --allow User:ana --topic orders --operation read --operation describe",
            "odradek acl add --deny User:bob --topic pay --prefixed --operation all",
        ),
    )
    actions.add(
        "delete",
        "delete what a filter matches",
        delete,
        options=_delete_options,
        examples=("odradek acl delete --topic orders --principal User:ana --yes",),
    )


def _resource_options(parser: argparse.ArgumentParser) -> None:
    resource = parser.add_mutually_exclusive_group()
    resource.add_argument("--topic", metavar="NAME")
    resource.add_argument("--group", metavar="NAME")
    resource.add_argument("--transactional-id", metavar="NAME")
    resource.add_argument("--user", metavar="NAME")
    resource.add_argument("--cluster", action="store_true")
    parser.add_argument("--prefixed", action="store_true", help="NAME is how names begin")
    parser.add_argument("--host", metavar="ADDRESS")


def _filter_options(parser: argparse.ArgumentParser) -> None:
    _resource_options(parser)
    parser.add_argument("--principal", metavar="User:NAME")


def _delete_options(parser: argparse.ArgumentParser) -> None:
    _filter_options(parser)
    add_yes(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    _resource_options(parser)
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--allow", metavar="User:NAME")
    who.add_argument("--deny", metavar="User:NAME")
    words = [word(operation) for operation in AclOperation if operation is not AclOperation.ANY]
    parser.add_argument("--operation", action="append", choices=words, required=True, metavar="OPERATION",
                        help=f"repeatable: {', '.join(words)}")  # fmt: skip


def word(value: IntEnum) -> str:
    """Returns an enumeration's value as it is typed."""
    return value.name.lower().replace("_", "-")


def _resource(options: argparse.Namespace) -> tuple[AclResource, str | None]:
    if options.cluster:
        return AclResource.CLUSTER, CLUSTER_NAME
    for kind in (AclResource.TOPIC, AclResource.GROUP, AclResource.TRANSACTIONAL_ID, AclResource.USER):
        name = getattr(options, kind.name.lower())
        if name is not None:
            return kind, name
    return AclResource.ANY, None


def _pattern(options: argparse.Namespace, default: AclPattern) -> AclPattern:
    return AclPattern.PREFIXED if options.prefixed else default


def _principal(text: str | None, option: str) -> str | None:
    if text is not None and ":" not in text:
        raise misuse(f"{option} {text}: a type and a name are expected, such as User:{text}")
    return text


def _row(resource: int, name: str, pattern: int, principal: str, host: str, operation: int, permission: int) -> Row:
    values = zip(
        (AclResource, AclPattern, AclOperation, AclPermission),
        (resource, pattern, operation, permission),
        strict=True,
    )
    kind, how, what, whether = (_word_of(enumeration, number) for enumeration, number in values)
    return dict(zip(COLUMNS, (kind, name, how, principal, host, what, whether), strict=True))


def _word_of(enumeration: type[IntEnum], number: int) -> str:
    return word(enumeration(number)) if number in enumeration._value2member_map_ else str(number)


async def list_all(session: Session) -> None:
    options = session.options
    kind, name = _resource(options)
    request = DescribeAclsRequest(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=_pattern(options, AclPattern.ANY),
        principal_filter=_principal(options.principal, "--principal"),
        host_filter=options.host,
        operation=AclOperation.ANY,
        permission_type=AclPermission.ANY,
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
        raise misuse("--topic, --group, --transactional-id, --user or --cluster says what it is about")
    principal = _principal(options.allow or options.deny, "--allow" if options.allow else "--deny") or ""
    permission = AclPermission.ALLOW if options.allow else AclPermission.DENY
    creations = [
        AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=_pattern(options, AclPattern.LITERAL),
            principal=principal,
            host=options.host or "*",
            operation=AclOperation[operation.upper().replace("-", "_")],
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
        raise misuse("a resource or --principal says which ACLs to delete")
    session.confirm([principal or name or ""], "to delete ACLs of")
    chosen = DeleteAclsFilter(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=_pattern(options, AclPattern.ANY),
        principal_filter=principal,
        host_filter=options.host,
        operation=AclOperation.ANY,
        permission_type=AclPermission.ANY,
    )
    answer = await session.cluster.controller(DeleteAclsRequest(filters=[chosen]), DeleteAclsResponse)
    rows: list[Row] = []
    for result in answer.filter_results:
        raise_if("ACLs", result.error_code, result.error_message)
        for one in result.matching_acls:
            row = _row(
                one.resource_type,
                one.resource_name,
                one.pattern_type,
                one.principal,
                one.host,
                one.operation,
                one.permission_type,
            )
            error = explain(one.error_code, one.error_message) if one.error_code else None
            rows.append({**row, "error": error} if error else {**row, "result": "deleted"})
    if not rows:
        raise CommandError("no ACL matches")
    return session.results(COLUMNS, sorted(rows, key=str))
