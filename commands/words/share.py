"""`odradek share`: share groups (KIP-932)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.actions import Actions
from cli.flags import ALL, COUNT, FROM, YES, Flag, duration
from commands.errors import CommandError, misuse
from commands.groups.listing import SHARE, GroupDescription, delete_group, describe_all
from commands.groups.reset import RESET_HELP, reset_offsets, reset_options
from commands.records.layout import add_record_layout, record_writer
from commands.records.output import FORMAT_HELP
from commands.session import Session, add_topics, chosen_topics
from commands.shares.offsets import forget_start_offsets, set_start_offsets, start_offsets, state_rows
from commands.shares.records import NO_API, all_group_records, record_rows
from commands.shares.session import ACCEPT, REJECT, RELEASE
from commands.words.group import add_groups, add_state, show, show_listings
from protocol.lazy import lazy

if TYPE_CHECKING:
    from commands.shares import consumer, dead_letters
else:  # they need an event loop, which the other actions do without
    consumer = lazy("commands.shares.consumer")
    dead_letters = lazy("commands.shares.dead_letters")

CONSUME_HELP = f"""\
A new group starts at the end of its topics; `odradek config set group GROUP share.auto.offset.reset=earliest` makes
it start at their beginning. Records are acknowledged once they are printed.

{FORMAT_HELP}"""

STATE_HELP = """\
Ranges after a partition's start offset: acknowledged or archived records are done, available records were delivered
before and released. They are what the share coordinator has stored; `odradek share records` shows what members hold."""

RECORDS_HELP = """\
Ranges from a partition's start offset to its end, with the member that has them, the end of its lock or of a delay, and
the record of the same key for which they wait. Brokers other than Odradek's have no API for this: then it shows the
stored states, as `odradek share state` does."""

LETTERS_HELP = """\
A letter is named PARTITION:OFFSET, by its place in the queue. The newest 10,000 records of each partition are read,
or those from --from on."""

REDRIVE_HELP = """\
Sends the records of letters back to their partitions, with their key, value, headers and the headers __dlq.redriven.*,
in one transaction. All groups of the topic get them again. A letter is redriven once: a note in the queue marks it."""


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
        "show share groups with the start offset and the lag of each partition",
        describe,
        concurrent=True,
        options=add_groups,
        examples=("odradek share describe workers", "odradek share describe workers -o table"),
    )
    actions.add(
        "state",
        "show the delivery states of the records after the start offset",
        state,
        concurrent=True,
        options=_group,
        examples=("odradek share state workers",),
        more=STATE_HELP,
    )
    _declare_records(actions)
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
        "set the start offsets of a share group without members; only shows the changes without --yes",
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
        "delete a share group's offsets of topics",
        forget,
        options=_forget_options,
        examples=("odradek share forget workers jobs --yes",),
    )
    actions.add(
        "delete",
        "delete share groups without members",
        delete,
        options=_delete_options,
        examples=("odradek share delete workers --yes",),
    )


def _declare_records(actions: Actions) -> None:
    actions.add(
        "records",
        "show the records in flight, who has them, and why each is not delivered",
        records,
        concurrent=True,
        options=_group,
        examples=("odradek share records workers", "odradek share records workers -o table"),
        more=RECORDS_HELP,
    )
    actions.add(
        "dead-letters",
        "show the dead letters of a share group, the newest first",
        letters,
        concurrent=True,
        options=_letters_options,
        examples=(
            "odradek share dead-letters workers",
            "odradek share dead-letters workers --queue dlq.jobs -n 20 -o table",
        ),
        more=LETTERS_HELP,
    )
    actions.add(
        "redrive",
        "send dead letters back to their topic; only shows the plan without --yes",
        redrive,
        concurrent=True,
        options=_redrive_options,
        examples=(
            "odradek share redrive workers 0:0",
            "odradek share redrive workers 0:0 --queue dlq.jobs --yes",
            "odradek share redrive workers --all --yes",
        ),
        more=REDRIVE_HELP,
    )


def _group(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")


async def share_groups(session: Session, names: Sequence[str]) -> dict[str, GroupDescription | CommandError]:
    """Returns share groups, or the error of a group that can't be described or has another type, by name."""
    groups = await describe_all(session.cluster, names)
    return {name: _shared(group) for name, group in groups.items()}


def _shared(group: GroupDescription | CommandError) -> GroupDescription | CommandError:
    if isinstance(group, CommandError) or group.type == SHARE:
        return group
    return CommandError(f"group {group.group} is a {group.type} group: use `odradek group`")


async def _require_share_groups(session: Session, names: Sequence[str]) -> None:
    """Raises CommandError if a group can't be described or has another type."""
    for group in (await share_groups(session, names)).values():
        if isinstance(group, CommandError):
            raise group


async def list_all(session: Session) -> None:
    await show_listings(session, (SHARE,))


async def describe(session: Session) -> None:
    await show(session, await share_groups(session, session.options.groups))


async def state(session: Session) -> None:
    await _require_share_groups(session, [session.options.group])
    rows = await state_rows(session.cluster, session.options.group)
    columns = ("topic", "partition", "first", "last", "state", "deliveries")
    session.output.rows(columns, rows, empty="no record after the start offsets was delivered")


async def records(session: Session) -> None:
    group = session.options.group
    await _require_share_groups(session, [group])
    found = await all_group_records(session.cluster, group)
    if not found.has_api:
        session.output.note(f"odradek: {NO_API}")
    columns = ("topic", "partition", "first", "last", "state", "deliveries", "member", "until", "waits_for", "why")
    session.output.rows(columns, record_rows(found), empty="no records after the start offsets")


def _letters_options(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    COUNT.add(parser, help="at most N letters")
    _queue_options(parser)


def _queue_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queue", metavar="TOPIC", help="topic of the letters; default: the group's present queue")
    FROM.add(parser, help="first position to read in each partition of the queue")


async def _found_letters(session: Session) -> list[dead_letters.DeadLetter]:
    options, cluster = session.options, session.cluster
    queue = options.queue or await dead_letters.queue_of(cluster, options.group)
    position = None if options.start is None else session.position("--from", options.start)
    return await dead_letters.dead_letters(cluster, options.group, queue, position)


async def letters(session: Session) -> None:
    options = session.options
    if options.count is not None and options.count < 1:
        raise misuse(f"-n {options.count}: expected a number of letters, 1 or more")
    rows = dead_letters.letter_rows((await _found_letters(session))[: options.count])
    columns = ("letter", "topic", "partition", "offset", "deliveries", "reason", "time", "redriven")
    session.output.rows(columns, rows, empty="no dead letters")


def _redrive_options(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("letters", nargs="*", metavar="LETTER", help="PARTITION:OFFSET of a letter in the queue")
    ALL.add(parser, help="all letters that were not redriven yet")
    _queue_options(parser)
    YES.add(parser, help="send the records, instead of showing the plan")


async def redrive(session: Session) -> int:
    options = session.options
    if bool(options.letters) == options.all:
        raise misuse(
            "name the letters to redrive, such as 0:17, or all with --all; `odradek share dead-letters` lists them"
        )
    found = await _found_letters(session)
    if options.all:
        chosen = sorted(letter for letter in found if letter.redriven_ms is None)
    else:
        chosen = dead_letters.chosen_letters(found, options.letters)
    plans = await dead_letters.plan_redrive(session.cluster, chosen)
    if options.yes and plans:
        await dead_letters.redrive(session.cluster, plans)
    rows = dead_letters.plan_rows(plans, "redriven" if options.yes else "would be redriven")
    status = session.results(("letter", "topic", "partition", "offset", "reason", "record_from"), rows)
    if not options.yes:
        session.output.note("odradek: nothing was changed; --yes sends the records")
    return status


def _consume_options(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    add_topics(parser)
    COUNT.add(parser, help="stop after N records")
    Flag(("--timeout",), "stop after a time without a record, such as 5s", "DURATION", duration).add(parser)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--release", action="store_true", help="release the records at the end, for other members")
    kind.add_argument("--reject", action="store_true", help="reject the records, so that they are not delivered again")
    add_record_layout(parser)


async def consume(session: Session) -> None:
    options = session.options
    if options.count is not None and options.count < 1:
        raise misuse(f"-n {options.count}: expected a number of records, 1 or more")
    write = record_writer(session)
    options.topics = await chosen_topics(session)
    await session.cluster.topics(options.topics)  # raises for a missing topic, to which a member may subscribe
    kind = RELEASE if options.release else REJECT if options.reject else ACCEPT
    await consumer.ShareConsumer(session, write, kind, options.timeout).run()


async def reset(session: Session) -> int:
    return await reset_offsets(session, start_offsets, set_start_offsets)


def _forget_options(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    YES.add(parser)


async def forget(session: Session) -> int:
    options = session.options
    await _require_share_groups(session, [options.group])
    session.confirm([options.group], "to delete offsets of")
    results = await forget_start_offsets(session.cluster, options.group, options.topics)
    rows = [
        {"topic": topic, **({"error": error} if error else {"result": "deleted"})}
        for topic, error in sorted(results.items())
    ]
    return session.results(("topic",), rows)


def _delete_options(parser: argparse.ArgumentParser) -> None:
    add_groups(parser)
    YES.add(parser)


async def delete(session: Session) -> int:
    names = session.options.groups
    await _require_share_groups(session, names)
    session.confirm(names, "to delete")
    return session.results(("group",), [await delete_group(session.cluster, name) for name in names])
