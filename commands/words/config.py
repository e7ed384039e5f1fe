"""`odradek config`."""

from __future__ import annotations

import argparse
from typing import Final

from cli.actions import Actions
from cli.flags import ALL, DRY_RUN, UNSET
from commands.errors import misuse
from commands.printing import Row
from commands.session import Session, assignments
from commands.state.configs import (
    APPEND,
    CLUSTER_DEFAULT,
    DELETE,
    KINDS,
    SET,
    SUBTRACT,
    ConfigChange,
    ConfigOwner,
    ResourceKind,
    alter_configs,
    config_row,
    describe_configs,
    is_own,
)

ALL_BROKERS: Final = "all"
"""The word in place of a broker's id that stands for the defaults of all brokers."""

SOURCES_HELP: Final = """\
Sources: topic, group, client-metrics and broker are values that were set for this resource itself; cluster are
those for all brokers; file are those of server.properties; default are the built-in ones."""


def declare(actions: Actions) -> None:
    actions.add(
        "describe",
        "show configs with the source of each value",
        describe,
        options=_describe_options,
        examples=(
            "odradek config describe topic orders",
            "odradek config describe topic orders --all --docs",
            "odradek config describe broker 1 --match log.retention",
        ),
        more=SOURCES_HELP,
    )
    actions.add(
        "get",
        "print the value of one config, and nothing else",
        get,
        options=_get_options,
        examples=("odradek config get topic orders retention.ms", "odradek config get broker 1 num.partitions"),
    )
    actions.add(
        "set",
        "change configs: set or unset them, add to a list or remove from it",
        change,
        options=_set_options,
        examples=(
            "odradek config set topic orders retention.ms=86400000",
            "odradek config set topic orders --append cleanup.policy=compact",
            "odradek config set topic orders --subtract cleanup.policy=compact --unset retention.ms",
            "odradek config set broker all log.cleaner.threads=2 --dry-run",
        ),
    )


def _resource_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument(
        "name", metavar="NAME", help="name of a topic or group, id of a broker, or all: the defaults of all brokers"
    )


def owner_of(kind: str, name: str) -> ConfigOwner:
    """Returns the config resource that a kind and a name denote."""
    is_default = KINDS[kind] is ResourceKind.BROKER and name == ALL_BROKERS
    return ConfigOwner(KINDS[kind], CLUSTER_DEFAULT if is_default else name)


def _describe_options(parser: argparse.ArgumentParser) -> None:
    _resource_options(parser)
    ALL.add(parser, help="also configs that were not set")
    parser.add_argument("--docs", action="store_true", help="also the documentation of each config")
    parser.add_argument("--match", metavar="TEXT", help="only configs with TEXT in their names, from any source")


async def describe(session: Session) -> None:
    options = session.options
    configs = await describe_configs(session.cluster, owner_of(options.kind, options.name), documentation=options.docs)
    rows: list[Row] = []
    for config in configs:
        if options.match in config.name if options.match else options.all or is_own(config):
            row = {"kind": options.kind, "name": options.name, **config_row(config)}
            row["synonyms"] = [synonym.name for synonym in config.synonyms if synonym.name != config.name]
            rows.append({**row, "documentation": config.documentation} if options.docs else row)
    columns = ("config", "value", "source", "type", "read_only", *(("documentation",) if options.docs else ()))
    session.output.rows(columns, rows, empty="nothing was set; --all shows the defaults")


def _get_options(parser: argparse.ArgumentParser) -> None:
    _resource_options(parser)
    parser.add_argument("config", metavar="CONFIG", help="name of the config")


async def get(session: Session) -> None:
    options = session.options
    configs = await describe_configs(session.cluster, owner_of(options.kind, options.name), [options.config])
    for config in configs:
        if config.name == options.config:
            if config.is_sensitive:
                raise misuse(f"{options.config}: a secret, which brokers don't return")
            session.output.line(config.value or "")
            return
    raise misuse(f"{options.config}: a {options.kind} has no such config; `odradek config describe --all` shows them")


def _set_options(parser: argparse.ArgumentParser) -> None:
    _resource_options(parser)
    parser.add_argument("configs", nargs="*", metavar="CONFIG=VALUE", help="configs to set")
    UNSET.add(parser, repeatable=True, help="a config whose value is removed")
    parser.add_argument(
        "--append", action="append", default=[], metavar="CONFIG=ITEM", help="add to a list; repeatable"
    )
    parser.add_argument(
        "--subtract", action="append", default=[], metavar="CONFIG=ITEM", help="remove from a list; repeatable"
    )
    DRY_RUN.add(parser)


async def change(session: Session) -> int:
    options = session.options
    if "=" in options.name:
        raise misuse(f"{options.name}: expected the name of a {options.kind} before its configs")
    changes = [ConfigChange(key, SET, value) for key, value in assignments(options.configs, "config").items()]
    changes += [ConfigChange(key, DELETE) for key in options.unset]
    for operation, option, given in ((APPEND, "--append", options.append), (SUBTRACT, "--subtract", options.subtract)):
        changes += [ConfigChange(key, operation, value) for key, value in assignments(given, option).items()]
    if not changes:
        raise misuse("nothing to change: CONFIG=VALUE, --unset, --append or --subtract")
    row = await alter_configs(session.cluster, owner_of(options.kind, options.name), changes, dry_run=options.dry_run)
    return session.results(("kind", "name"), [row])
