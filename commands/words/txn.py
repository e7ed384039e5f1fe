"""`odradek txn`."""

from __future__ import annotations

import argparse

from cli.actions import Actions
from cli.flags import OLDER_THAN, YES, integer
from commands.errors import CommandError, misuse
from commands.session import Session
from commands.state.transactions import (
    abort_transaction,
    described_transaction,
    hanging_rows,
    open_transactions,
    transaction_rows,
)


def declare(actions: Actions) -> None:
    actions.add(
        "list",
        "list transactional ids with the state of their transactions",
        list_all,
        examples=("odradek txn list", "odradek txn list -o table"),
    )
    actions.add(
        "describe",
        "show transactions with their partitions",
        describe,
        options=lambda parser: _add(parser, "ids", nargs="+", metavar="ID"),
        examples=("odradek txn describe shop-1",),
    )
    actions.add(
        "hanging",
        "find open transactions that no coordinator has, and that block readers",
        hanging,
        concurrent=True,
        options=_hanging_options,
        examples=("odradek txn hanging orders", "odradek txn hanging --older-than 1h"),
    )
    actions.add(
        "abort",
        "abort a hanging transaction in a partition",
        abort,
        options=_abort_options,
        examples=("odradek txn abort orders:0 --start-offset 42 --yes",),
        more="Use it only for transactions that `odradek txn hanging` shows: a live producer would lose its records.",
    )


def _add(parser: argparse.ArgumentParser, name: str, *, nargs: str, metavar: str) -> None:
    parser.add_argument(name, nargs=nargs, metavar=metavar)


async def list_all(session: Session) -> None:
    rows = await transaction_rows(session.cluster)
    session.output.rows(("id", "state", "producer", "coordinator"), rows, empty="there are no transactional ids")


async def describe(session: Session) -> None:
    rows = [await described_transaction(session.cluster, name) for name in session.options.ids]
    session.output.rows(("id", "state", "producer", "epoch", "timeout_ms", "started", "partitions"), rows)


def _hanging_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")
    OLDER_THAN.add(parser, default="15m")


async def hanging(session: Session) -> int:
    rows = await hanging_rows(session.cluster, session.options.topics or None, session.options.older_than)
    columns = ("topic", "partition", "producer", "epoch", "start_offset", "coordinator_epoch", "last_write")
    session.output.rows(columns, rows, empty="no transaction hangs")
    return 1 if rows else 0


def _abort_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partition", metavar="TOPIC:PARTITION")
    parser.add_argument(
        "--start-offset", type=integer, required=True, metavar="N", help="the transaction's first offset"
    )
    YES.add(parser)


async def abort(session: Session) -> int:
    name, _, index = session.options.partition.rpartition(":")
    if not name or not index.isdecimal():
        raise misuse(f"{session.options.partition}: expected TOPIC:PARTITION, such as orders:0")
    topic = await session.cluster.topic(name)
    rows = await open_transactions(session.cluster, topic)
    chosen = [
        row for row in rows if row["partition"] == int(index) and row["start_offset"] == session.options.start_offset
    ]
    if not chosen:
        raise CommandError(f"{name}-{index}: no open transaction starts at {session.options.start_offset}")
    session.confirm([session.options.partition], "to abort the transaction in")
    leader = next(partition.leader_id for partition in topic.partitions if partition.partition_index == int(index))
    return session.results(
        ("topic", "partition", "producer"), [await abort_transaction(session.cluster, leader, chosen[0])]
    )
