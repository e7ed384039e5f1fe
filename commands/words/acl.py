"""`odradek acl`."""

from __future__ import annotations

import argparse
from typing import Final, NamedTuple

from cli.actions import Actions
from cli.flags import GROUP, TOPIC, TRANSACTIONAL_ID, USER, YES
from commands.errors import CommandError, misuse
from commands.session import Session
from commands.state.acls import ACL_COLUMNS, OPERATIONS, AclQuery, acl_rows, add_acls, delete_acls, word
from protocol.acl import ANY, CLUSTER_NAME, PatternType, Permission, Resource
from protocol.messages.create_acls import AclCreation

ROLES_HELP: Final = """\
--producer adds the operations of a producer: write, describe and create on the topic, write and describe on the
transactional id. --consumer adds those of a consumer: read and describe on the topic, read on the group."""


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


async def list_all(session: Session) -> None:
    options = session.options
    rows = await acl_rows(session.cluster, _chosen(options))
    session.output.rows(ACL_COLUMNS, rows, empty="there are no ACLs")


def _chosen(options: argparse.Namespace) -> AclQuery:
    kind, name = _resource(options)
    return AclQuery(kind, name, _pattern(options, ANY), _principal(options.principal, "--principal"), options.host)


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
    return session.results(ACL_COLUMNS, await add_acls(session.cluster, creations))


async def delete(session: Session) -> int:
    query = _chosen(session.options)
    if query.name is None and query.principal is None:
        raise misuse("name the ACLs to delete with a resource or --principal")
    session.confirm([query.principal or query.name or ""], "to delete ACLs of")
    rows = await delete_acls(session.cluster, query)
    if not rows:
        raise CommandError("no ACL matches")
    return session.results(ACL_COLUMNS, rows)
