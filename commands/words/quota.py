"""`odradek quota` (KIP-546)."""

from __future__ import annotations

import argparse
from typing import Final

from cli.actions import Actions
from cli.flags import DRY_RUN, UNSET, USER
from commands.errors import explain, misuse, raise_if
from commands.printing import Row
from commands.session import Session, assignments
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

DEFAULT: Final = "<default>"
"""The word in place of a name that stands for all entities without a quota of their own."""

ENTITIES: Final = ("user", "client-id", "ip")
EXACTLY, THE_DEFAULT, ANY_NAME = range(3)


def declare(actions: Actions) -> None:
    actions.add(
        "list",
        "list quotas, all or those of the named entities",
        list_all,
        options=_entity_options,
        examples=("odradek quota list", "odradek quota list --user ana"),
    )
    actions.add(
        "set",
        "set and unset quotas of a user, a client id, both together, or an address",
        change,
        options=_set_options,
        examples=(
            "odradek quota set --user ana producer_byte_rate=1048576 consumer_byte_rate=2097152",
            "odradek quota set --user '<default>' --client-id batch request_percentage=50",
            "odradek quota set --user ana --unset producer_byte_rate",
        ),
    )


def _entity_options(parser: argparse.ArgumentParser) -> None:
    USER.add(parser, help=f"name of a user, or {DEFAULT}")
    parser.add_argument("--client-id", metavar="NAME", help=f"client id, or {DEFAULT}")
    parser.add_argument("--ip", metavar="ADDRESS", help=f"address of the client, or {DEFAULT}")


def _set_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("quotas", nargs="*", metavar="QUOTA=NUMBER", help="quotas to set")
    _entity_options(parser)
    UNSET.add(parser, repeatable=True, help="a quota that is removed")
    DRY_RUN.add(parser)


def _named(options: argparse.Namespace) -> dict[str, str]:
    values = {entity: getattr(options, entity.replace("-", "_")) for entity in ENTITIES}
    return {entity: name for entity, name in values.items() if name is not None}


async def list_all(session: Session) -> None:
    components = [
        ComponentData(
            entity_type=entity,
            match_type=THE_DEFAULT if name == DEFAULT else EXACTLY,
            match=None if name == DEFAULT else name,
        )
        for entity, name in _named(session.options).items()
    ]
    request = DescribeClientQuotasRequest(components=components, strict=False)
    answer = await session.cluster.any(request, DescribeClientQuotasResponse)
    raise_if("quotas", answer.error_code, answer.error_message)
    rows: list[Row] = [
        {
            **{part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in entry.entity},
            "quotas": {value.key: value.value for value in sorted(entry.values, key=lambda value: value.key)},
        }
        for entry in answer.entries or ()
    ]
    session.output.rows((*ENTITIES, "quotas"), sorted(rows, key=str), empty="there are no quotas")


async def change(session: Session) -> int:
    options = session.options
    named = _named(options)
    if not named:
        raise misuse("name the entity with --user, --client-id or --ip")
    operations = [OpData(key=key, value=0.0, remove=True) for key in options.unset]
    for key, value in assignments(options.quotas, "quota").items():
        try:
            operations.append(OpData(key=key, value=float(value), remove=False))
        except ValueError:
            raise misuse(f"{key}={value}: expected a number, such as {key}=1048576") from None
    if not operations:
        raise misuse("nothing to change: QUOTA=NUMBER sets a quota, --unset QUOTA removes it")
    entity = [
        EntityData(entity_type=kind, entity_name=None if name == DEFAULT else name) for kind, name in named.items()
    ]
    request = AlterClientQuotasRequest(
        entries=[EntryData(entity=entity, ops=operations)], validate_only=options.dry_run
    )
    answer = await session.cluster.controller(request, AlterClientQuotasResponse)
    rows: list[Row] = [
        {**named, "error": explain(result.error_code, result.error_message)}
        if result.error_code
        else {**named, "result": "would be changed" if options.dry_run else "changed"}
        for result in answer.entries
    ]
    return session.results(ENTITIES, rows)
