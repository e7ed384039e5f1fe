"""`odradek share`: share groups (KIP-932)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from commands.declaring import Actions, Session, add_yes
from commands.errors import CommandError, misuse
from commands.groups.listing import SHARE, GroupDescription, describe_all
from commands.groups.reset import RESET_HELP, reset_offsets, reset_options
from commands.records.layout import add_record_layout, record_writer
from commands.records.output import FORMAT_HELP
from commands.shares.offsets import forget_start_offsets, set_start_offsets, start_offsets, state_rows
from commands.shares.session import ACCEPT, REJECT, RELEASE
from commands.times import parse_duration
from commands.words.group import add_groups, add_state, delete_group, show, show_listings

CONSUME_HELP = f"""\
A group that nobody has been in begins at the end of its topics: `odradek config set group GROUP
share.auto.offset.reset=earliest` makes that the start. Records are acknowledged once they are printed.

{FORMAT_HELP}"""

STATE_HELP = """\
Ranges behind a partition's start: acknowledged or archived ones are done, available ones were delivered before and
given back. Records that a member has at this moment are in no API: `odradek share describe` counts them in the lag."""


def declare(actions: Actions) -> None:
    actions.add(
        "list",
        "list share groups",
        list_all,
        options=add_state,
        examples=("odradek share list", "odradek share list --state Stable -o table"),
    )
    actions.add(
        "describe",
        "show share groups with where each partition starts, and how many records are left",
        describe,
        concurrent=True,
        options=add_groups,
        examples=("odradek share describe workers", "odradek share describe workers -o table"),
    )
    actions.add(
        "state",
        "show which records behind the start are done, or were delivered before",
        state,
        concurrent=True,
        options=_group,
        examples=("odradek share state workers",),
        more=STATE_HELP,
    )
    actions.add(
        "consume",
        "read records as a member of a share group, and acknowledge them",
        consume,
        concurrent=True,
        options=_consume_options,
        examples=(
            "odradek share consume workers jobs -n 2",
            "odradek share consume workers jobs -n 1 --release",
            "odradek share consume workers jobs --timeout 2s -f '%o delivered %d times: %v\\n'",
        ),
        more=CONSUME_HELP,
    )
    actions.add(
        "reset",
        "set where a share group that nobody is in starts; shows what would change unless told to",
        reset,
        options=reset_options,
        examples=(
            "odradek share reset workers --to start",
            "odradek share reset workers --to @-1h --topic jobs:0 --yes",
            "odradek share reset workers --to end --yes",
        ),
        more=RESET_HELP,
    )
    actions.add(
        "forget",
        "delete what a share group has of topics",
        forget,
        options=_forget_options,
        examples=("odradek share forget workers jobs --yes",),
    )
    actions.add(
        "delete",
        "delete share groups that nobody is in",
        delete,
        options=_delete_options,
        examples=("odradek share delete workers --yes",),
    )


def _group(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")


async def share_groups(session: Session, names: Sequence[str]) -> list[GroupDescription]:
    """Returns share groups. Raises CommandError for one that is there and of another type."""
    groups = await describe_all(session.cluster, names)
    for group in groups:
        if group.type != SHARE:
            raise CommandError(f"group {group.group} is a {group.type} group: `odradek group` is for these")
    return groups


async def list_all(session: Session) -> None:
    await show_listings(session, (SHARE,))


async def describe(session: Session) -> None:
    await show(session, await share_groups(session, session.options.groups))


async def state(session: Session) -> None:
    await share_groups(session, [session.options.group])
    rows = await state_rows(session.cluster, session.options.group)
    columns = ("topic", "partition", "first", "last", "state", "deliveries")
    session.output.rows(columns, rows, empty="nothing behind the starts was delivered")


def _consume_options(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument("-n", "--count", type=int, metavar="N", help="stop after so many records")
    parser.add_argument("--timeout", metavar="TIME", help="stop when no record has come for so long, such as 5s")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--release", action="store_true", help="give the records back in the end, for others")
    kind.add_argument("--reject", action="store_true", help="nobody is to get them again")
    add_record_layout(parser)


async def consume(session: Session) -> None:
    options = session.options
    timeout_ms = None
    if options.timeout is not None:
        try:
            timeout_ms = parse_duration(options.timeout)
        except ValueError as error:
            raise misuse(f"--timeout: {error}") from None
    if options.count is not None and options.count < 1:
        raise misuse(f"-n {options.count}: a number of records is expected, 1 or more")
    from commands.shares.consumer import ShareConsumer  # an event loop, which the other actions do without

    write = record_writer(session)
    await session.cluster.topics(options.topics)  # a member may subscribe to what is not there, a person means a topic
    kind = RELEASE if options.release else REJECT if options.reject else ACCEPT
    await ShareConsumer(session, write, kind, timeout_ms).run()


async def reset(session: Session) -> int:
    return await reset_offsets(session, start_offsets, set_start_offsets)


def _forget_options(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    add_yes(parser)


async def forget(session: Session) -> int:
    options = session.options
    await share_groups(session, [options.group])
    session.confirm([options.group], "to delete what is known of topics in")
    results = await forget_start_offsets(session.cluster, options.group, options.topics)
    rows = [
        {"topic": topic, **({"error": error} if error else {"result": "deleted"})}
        for topic, error in sorted(results.items())
    ]
    return session.results(("topic",), rows)


def _delete_options(parser: argparse.ArgumentParser) -> None:
    add_groups(parser)
    add_yes(parser)


async def delete(session: Session) -> int:
    names = session.options.groups
    await share_groups(session, names)
    session.confirm(names, "to delete")
    return session.results(("group",), [await delete_group(session, name) for name in names])
