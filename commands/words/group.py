"""`odradek group`."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from typing import Final

from cli.actions import Actions
from cli.flags import YES
from commands.client.cluster_client import ClusterClient, outcome
from commands.errors import CommandError
from commands.groups.lags import partition_rows
from commands.groups.listing import SHARE, TYPES, GroupDescription, delete_group, describe_all, list_groups
from commands.groups.offsets import commit_offsets, committed_offsets, delete_offsets
from commands.groups.reset import RESET_HELP, reset_offsets, reset_options
from commands.printing import Row
from commands.records.positions import Lookup
from commands.session import Session
from protocol.types import TopicPartition

LAG_COLUMNS: Final = ("topic", "partition", "committed", "end", "lag", "member", "client", "host")

SHARE_COLUMNS: Final = ("topic", "partition", "start", "lag")


def declare(actions: Actions) -> None:
    actions.add(
        "list",
        "list groups of every type",
        list_all,
        options=_list_options,
        examples=("odradek group list", "odradek group list --type consumer --type share -o table"),
    )
    actions.add(
        "describe",
        "show groups with the committed offset and the lag of each partition",
        describe,
        concurrent=True,
        options=add_groups,
        examples=("odradek group describe billing", "odradek group describe billing -o table"),
    )
    actions.add(
        "members",
        "show the members of groups, with their partitions",
        members,
        concurrent=True,
        options=add_groups,
        examples=("odradek group members billing",),
    )
    actions.add(
        "reset",
        "set the offsets of a group without members; only shows the changes without --yes",
        reset,
        options=reset_options,
        examples=(
            "odradek group reset billing --to start",
            "odradek group reset billing --to @-1h --topic orders:0,1 --yes",
            "odradek group reset billing --shift -10 --yes",
            "odradek group reset billing --to-group shipping --yes",
            "odradek group describe billing -o json > offsets.json",
            "odradek group reset billing --to-file offsets.json --yes",
        ),
        more=RESET_HELP,
    )
    actions.add(
        "forget",
        "delete a group's committed offsets of topics",
        forget,
        options=_forget_options,
        examples=("odradek group forget billing orders --yes",),
    )
    actions.add(
        "delete",
        "delete groups without members, with their offsets",
        delete,
        options=_delete_options,
        examples=("odradek group delete billing --yes",),
    )


def add_groups(parser: argparse.ArgumentParser) -> None:
    """Adds the names of groups."""
    parser.add_argument("groups", nargs="+", metavar="GROUP")


def _list_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", action="append", choices=TYPES, help="repeatable; default: all")
    add_state(parser)


def add_state(parser: argparse.ArgumentParser) -> None:
    """Adds --state, which filters the list."""
    parser.add_argument("--state", action="append", metavar="STATE", help="such as Stable or Empty; repeatable")


async def list_all(session: Session) -> None:
    await show_listings(session, session.options.type or ())


async def show_listings(session: Session, types: Collection[str]) -> None:
    """Shows the groups of `types` (all types if empty) and of the states that --state names."""
    states = {state.lower() for state in session.options.state or ()}
    listings = await list_groups(session.cluster)
    rows: list[Row] = [
        listing._asdict()
        for listing in listings.groups
        if (not types or listing.type in types) and (not states or listing.state.lower() in states)
    ]
    rows += [{"group": None, "coordinator": node, "error": error} for node, error in listings.errors.items()]
    session.output.rows(("group", "type", "state", "protocol", "coordinator"), rows, empty="there are no groups")


async def describe(session: Session) -> None:
    await show(session, await describe_all(session.cluster, session.options.groups))


async def show(session: Session, groups: Mapping[str, GroupDescription | CommandError]) -> None:
    """Shows groups with their partitions. The lag of a group is unknown if a partition's lag is."""
    for name, group in groups.items():
        partitions = group if isinstance(group, CommandError) else await outcome(partition_rows(session.cluster, group))
        if isinstance(group, CommandError) or isinstance(partitions, CommandError):
            session.output.rows(("group",), [{"group": name, "error": str(partitions)}])
            continue
        known = sum(lag for row in partitions if isinstance(lag := row["lag"], int))
        total: dict[str, object] = {**_head(group), "lag": None if any(map(_has_unknown_lag, partitions)) else known}
        session.output.document(
            {**total, "partitions": partitions},
            (
                (f"group {name}", ("type", "state", "assignor", "coordinator", "members", "lag"), [total]),
                ("partitions", SHARE_COLUMNS if group.type == SHARE else LAG_COLUMNS, partitions),
            ),
        )


def _has_unknown_lag(row: Row) -> bool:
    """True if a partition has a lag that the cluster didn't return. A partition of a consumer group has none before its
    first commit, and after its topic was deleted."""
    return bool(row.get("error")) or ("committed" not in row and row["lag"] is None)


def _head(group: GroupDescription) -> dict[str, object]:
    return {
        "group": group.group,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "members": len(group.members),
    }


async def members(session: Session) -> None:
    rows: list[Row] = []
    for name, group in (await describe_all(session.cluster, session.options.groups)).items():
        if isinstance(group, CommandError):
            rows.append({"group": name, "error": group.message})
            continue
        rows += [
            {
                "group": name,
                "member": member.member,
                "instance": member.instance,
                "client": member.client,
                "host": member.host,
                "partitions": list(map(str, member.partitions)),
            }
            for member in group.members
        ]
    columns = ("group", "member", "instance", "client", "host", "partitions")
    session.output.rows(columns, rows, empty="there are no members")


async def reset(session: Session) -> int:
    return await reset_offsets(session, _committed, commit_offsets)


async def _committed(cluster: ClusterClient, group: str) -> Lookup:
    return Lookup(await committed_offsets(cluster, group), {})


def _forget_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    YES.add(parser)


async def forget(session: Session) -> int:
    options = session.options
    committed = await committed_offsets(session.cluster, options.group)
    places: list[TopicPartition] = [place for place in committed if place.topic in options.topics]
    if not places:
        raise CommandError(f"group {options.group} has no offsets of {', '.join(options.topics)}")
    session.confirm([options.group], "to delete offsets of")
    errors = await delete_offsets(session.cluster, options.group, places)
    rows = [
        {"topic": place.topic, "partition": place.partition, **({"error": error} if error else {"result": "deleted"})}
        for place, error in sorted(errors.items())
    ]
    return session.results(("topic", "partition"), rows)


def _delete_options(parser: argparse.ArgumentParser) -> None:
    add_groups(parser)
    YES.add(parser)


async def delete(session: Session) -> int:
    names = session.options.groups
    session.confirm(names, "to delete")
    return session.results(("group",), [await delete_group(session.cluster, name) for name in names])
