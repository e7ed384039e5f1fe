"""Transactions: the transactional ids, one transaction, and hanging transactions with their abort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from commands.client.cluster_client import outcome
from commands.errors import CommandError, misuse
from commands.printing import Row
from commands.state.transactions import (
    abort_transaction,
    described_transaction,
    hanging_rows,
    open_transactions,
    transaction_rows,
)
from console.changes import Plan
from console.pages.tables import Column, table_of
from console.visit import PageRequest

COLUMNS: Final = (
    Column("id", "Transactional id"),
    Column("state", "State"),
    Column("producer", "Producer", True),
    Column("coordinator", "Coordinator", True),
)
DEFAULT_AGE_S: Final = 900
"""Age of an open transaction without a coordinator that counts as hanging, as of `odradek txn hanging`."""


async def listing(visit: PageRequest) -> Response:
    rows = await transaction_rows(visit.cluster)
    errors = [str(row["error"]) for row in rows if row.get("error")]
    known = [row for row in rows if row["id"] is not None]
    values = {"table": table_of(visit, "/transactions", COLUMNS, known), "errors": errors}
    return visit.render("transactions.html", values)


async def transaction(visit: PageRequest) -> Response:
    name = visit.request.query_params.get("id", "")
    if not name:
        raise misuse("id: expected a transactional id")
    row = await described_transaction(visit.cluster, name)
    if row.get("error"):
        raise CommandError(str(row["error"]))
    return visit.render("transaction.html", {"row": row})


async def hanging(visit: PageRequest) -> Response:
    age_s = visit.number("age", DEFAULT_AGE_S)
    rows = await outcome(hanging_rows(visit.cluster, None, age_s * 1000, skip_leaderless=True))
    problem = rows.message if isinstance(rows, CommandError) else ""
    values = {"rows": [] if isinstance(rows, CommandError) else rows, "problem": problem, "age": age_s}
    return visit.render("hanging.html", values)


async def abort(visit: PageRequest) -> Plan:
    """Plans the abort of a hanging transaction."""
    name, index, start = visit.field("topic"), visit.field("partition"), visit.field("start_offset")
    topic = await visit.cluster.topic(name)
    rows = [
        row
        for row in await open_transactions(visit.cluster, topic, skip_leaderless=True)
        if (str(row["partition"]), str(row["start_offset"])) == (index, start)
    ]
    if not rows:
        raise CommandError(f"{name}-{index[:20]}: no open transaction starts at {start[:20]}")
    row = rows[0]
    leader = next(part.leader_id for part in topic.partitions if part.partition_index == row["partition"])

    async def carry_out() -> Sequence[Row]:
        return [await abort_transaction(visit.cluster, leader, row)]

    place = f"{name}-{index}"
    return Plan(
        "transaction.abort",
        place,
        f"Abort the transaction in {place}",
        carry_out,
        "/transactions/hanging",
        ("topic", "partition", "producer", "epoch", "start_offset", "last_write"),
        rows,
        ["odradek", "txn", "abort", f"{name}:{index}", "--start-offset", start, "--yes"],
        typed=place,
        note="Abort only transactions that no coordinator has: a live producer would lose its records.",
    )
