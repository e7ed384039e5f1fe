"""`odradek quota` (KIP-546)."""

from __future__ import annotations

import argparse

from cli.actions import Actions
from cli.flags import DRY_RUN, UNSET, USER
from commands.errors import misuse
from commands.session import Session, assignments
from commands.state.quotas import DEFAULT, ENTITIES, alter_quotas, quota_rows


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
    rows = await quota_rows(session.cluster, _named(session.options))
    session.output.rows((*ENTITIES, "quotas"), rows, empty="there are no quotas")


async def change(session: Session) -> int:
    options = session.options
    named = _named(options)
    if not named:
        raise misuse("name the entity with --user, --client-id or --ip")
    changes: dict[str, float | None] = dict.fromkeys(options.unset)
    for key, value in assignments(options.quotas, "quota").items():
        try:
            changes[key] = float(value)
        except ValueError:
            raise misuse(f"{key}={value}: expected a number, such as {key}=1048576") from None
    if not changes:
        raise misuse("nothing to change: QUOTA=NUMBER sets a quota, --unset QUOTA removes it")
    rows = await alter_quotas(session.cluster, named, changes, dry_run=options.dry_run)
    return session.results(ENTITIES, rows)
