"""Access control entries, users with SCRAM credentials, and quotas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.responses import Response

from commands.client.cluster_client import outcome
from commands.errors import CommandError, misuse
from commands.printing import Row
from commands.state.acls import ACL_COLUMNS, OPERATIONS, AclQuery, acl_rows, add_acls, created_row, delete_acls, word
from commands.state.quotas import DEFAULT, ENTITIES, alter_quotas, quota_rows
from commands.state.users import MECHANISMS, delete_password, set_password, user_rows
from console.changes import Plan
from console.pages.tables import Column, table_of
from console.visit import PageRequest
from protocol.acl import CLUSTER_NAME, PatternType, Permission, Resource
from protocol.messages.create_acls import AclCreation

RESOURCES: Final = {word(kind.name): kind for kind in Resource if kind.name not in ("UNKNOWN", "ANY")}
PATTERNS: Final = {"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED}
PERMISSIONS: Final = {"allow": Permission.ALLOW, "deny": Permission.DENY}
QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
                 "connection_creation_rate")  # fmt: skip

COLUMNS: Final = tuple(Column(name, name.capitalize()) for name in ("principal", *ACL_COLUMNS[:3], *ACL_COLUMNS[4:]))


async def acls(visit: PageRequest) -> Response:
    rows = await outcome(acl_rows(visit.cluster, AclQuery()))
    problem = rows.message if isinstance(rows, CommandError) else ""
    table = table_of(visit, "/security", COLUMNS, [] if isinstance(rows, CommandError) else rows)
    choices = {"resources": list(RESOURCES), "operations": list(OPERATIONS)}
    return visit.render("acls.html", {"tab": "acls", "table": table, "problem": problem, **choices})


async def users(visit: PageRequest) -> Response:
    rows = await outcome(user_rows(visit.cluster))
    problem = rows.message if isinstance(rows, CommandError) else ""
    listed = [] if isinstance(rows, CommandError) else rows
    values = {"tab": "users", "rows": listed, "problem": problem, "mechanisms": list(MECHANISMS)}
    return visit.render("users.html", values)


async def quotas(visit: PageRequest) -> Response:
    rows = await outcome(quota_rows(visit.cluster, {}))
    problem = rows.message if isinstance(rows, CommandError) else ""
    listed = [] if isinstance(rows, CommandError) else rows
    values = {"tab": "quotas", "rows": listed, "problem": problem, "entities": ENTITIES, "names": QUOTAS}
    return visit.render("quotas.html", {**values, "default": DEFAULT})


# Changes.


def _entry(visit: PageRequest) -> AclCreation:
    """Returns the entry of a form. Raises CommandError."""
    kind = _choice(visit, "resource", RESOURCES)
    principal = visit.field("principal")
    if ":" not in principal:
        raise misuse(f"principal {principal[:60]}: expected a type and a name, such as User:{principal[:40]}")
    return AclCreation(
        resource_type=kind,
        resource_name=CLUSTER_NAME if kind is Resource.CLUSTER else visit.field("name"),
        resource_pattern_type=_choice(visit, "pattern", PATTERNS),
        principal=principal,
        host=visit.field("host", required=False) or "*",
        operation=_choice(visit, "operation", OPERATIONS),
        permission_type=_choice(visit, "permission", PERMISSIONS),
    )


def _choice(visit: PageRequest, name: str, choices: Mapping[str, int]) -> int:
    text = visit.field(name)
    if text not in choices:
        raise misuse(f"{name} {text[:40]}: expected one of {', '.join(choices)}")
    return choices[text]


def _acl_words(word_: str, entry: AclCreation, row: Row) -> list[str]:
    """Returns the command line that adds or deletes an entry."""
    kind = str(row["resource"])
    words = ["odradek", "acl", word_]
    words += [f"--{row['permission']}" if word_ == "add" else "--principal", entry.principal]
    words += ["--cluster"] if entry.resource_type == Resource.CLUSTER else [f"--{kind}", entry.resource_name]
    words += ["--prefixed"] if entry.resource_pattern_type == PatternType.PREFIXED else []
    words += [] if entry.host == "*" else ["--host", entry.host]
    return [*words, "--operation", str(row["operation"])] if word_ == "add" else [*words, "--yes"]


async def add_acl(visit: PageRequest) -> Plan:
    """Plans a new access control entry."""
    entry = _entry(visit)
    row = created_row(entry)

    async def carry_out() -> Sequence[Row]:
        return await add_acls(visit.cluster, [entry])

    title = (
        f"{str(row['permission']).capitalize()} {entry.principal} to {row['operation']} {row['resource']} {row['name']}"
    )
    words = _acl_words("add", entry, row) if row["resource"] != "delegation-token" else []
    return Plan("acl.add", entry.principal, title, carry_out, "/security", ACL_COLUMNS, [row], words)


async def delete_acl(visit: PageRequest) -> Plan:
    """Plans the deletion of one access control entry."""
    entry = _entry(visit)
    row = created_row(entry)
    query = AclQuery(
        entry.resource_type,
        entry.resource_name,
        entry.resource_pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )
    if not await acl_rows(visit.cluster, query):
        raise CommandError("there is no such entry any longer")

    async def carry_out() -> Sequence[Row]:
        return await delete_acls(visit.cluster, query)

    note = "Clients that need this entry are rejected from then on." if row["permission"] == "allow" else ""
    return Plan("acl.delete", entry.principal, "Delete an entry", carry_out, "/security", ACL_COLUMNS, [row], note=note)


def _mechanism(visit: PageRequest) -> str:
    mechanism = visit.field("mechanism")
    if mechanism not in MECHANISMS:
        raise misuse(f"mechanism {mechanism[:40]}: expected one of {', '.join(MECHANISMS)}")
    return mechanism


async def set_user(visit: PageRequest) -> Plan:
    """Plans a password of a user. It is carried out at once: a password must not be in a second form."""
    user, mechanism, password = visit.field("user"), _mechanism(visit), visit.form.get("password", "")
    if not password:
        raise misuse("the field password is empty")

    async def carry_out() -> Sequence[Row]:
        return await set_password(visit.cluster, user, mechanism, password)

    row: Row = {"user": user, "mechanism": mechanism}
    return Plan(
        "user.set",
        user,
        f"Set the password of {user}",
        carry_out,
        "/security/users",
        ("user", "mechanism"),
        [row],
        is_small=True,
        fields={"password": ""},
    )


async def delete_user(visit: PageRequest) -> Plan:
    """Plans the deletion of a user's password."""
    user, mechanism = visit.field("user"), _mechanism(visit)

    async def carry_out() -> Sequence[Row]:
        return await delete_password(visit.cluster, user, mechanism)

    words = ["odradek", "user", "delete", user, "--mechanism", mechanism, "--yes"]
    row: Row = {"user": user, "mechanism": mechanism}
    title = f"Delete the password of {user}"
    columns = ("user", "mechanism")
    return Plan("user.delete", user, title, carry_out, "/security/users", columns, [row], words, typed=user)


async def set_quota(visit: PageRequest) -> Plan:
    """Plans a quota of an entity, or its removal."""
    named = {entity: name for entity in ENTITIES if (name := visit.field(entity, required=False))}
    if not named:
        raise misuse("name a user, a client id, both, or an address")
    quota, text = visit.field("quota"), visit.field("value", required=False)
    value = _quota(quota, text) if text else None
    before = [row for row in await quota_rows(visit.cluster, named) if {*row} - {"quotas"} == {*named}]
    old = before[0]["quotas"] if before else {}
    current = old.get(quota) if isinstance(old, Mapping) else None

    async def carry_out() -> Sequence[Row]:
        return await alter_quotas(visit.cluster, named, {quota: value})

    for row in await alter_quotas(visit.cluster, named, {quota: value}, dry_run=True):
        if row.get("error"):
            raise CommandError(str(row["error"]))
    words = ["odradek", "quota", "set", *(part for entity, name in named.items() for part in (f"--{entity}", name))]
    return Plan(
        "quota.set",
        ", ".join(f"{entity} {name}" for entity, name in named.items()),
        f"Change {quota}",
        carry_out,
        "/security/quotas",
        (*named, "quota", "before", "after"),
        [{**named, "quota": quota, "before": current, "after": value}],
        [*words, *([f"{quota}={text}"] if text else ["--unset", quota])],
    )


def _quota(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise misuse(f"{name} {text[:40]}: expected a number, such as 1048576")
    return value
