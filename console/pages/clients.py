"""Clients: the members of groups, and the clients that push their metrics (KIP-714) with software and latencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from commands.client.cluster_client import outcome
from commands.errors import CommandError, misuse
from commands.printing import Row
from commands.state.configs import DELETE, SET, ConfigChange, ConfigOwner, ResourceKind, alter_configs
from console.changes import Plan
from console.pages.tables import Column, table_of
from console.telemetry import PushedClients, pushed_clients, subscriptions
from console.visit import FIRST_MS, PageRequest

COLUMNS: Final = (
    Column("client", "Client"),
    Column("host", "Host"),
    Column("group", "Group"),
    Column("partitions", "Partitions", True),
)
CONFIGS: Final = ("metrics", "interval.ms", "match")


async def members(visit: PageRequest) -> Response:
    await visit.watched.ready(FIRST_MS)
    shown = visit.watched.shown
    rows = shown.clients if shown is not None else []
    values = {"tab": "members", "table": table_of(visit, "/clients", COLUMNS, rows), "is_read": shown is not None}
    return visit.render("clients.html", values)


async def telemetry(visit: PageRequest) -> Response:
    subscribed = await outcome(subscriptions(visit.cluster))
    pushed = await outcome(pushed_clients(visit.cluster))
    problems = [part.message for part in (subscribed, pushed) if isinstance(part, CommandError)]
    clients = PushedClients("", []) if isinstance(pushed, CommandError) else pushed
    values = {
        "tab": "telemetry",
        "subscriptions": [] if isinstance(subscribed, CommandError) else subscribed,
        "topic": clients.topic,
        "rows": clients.rows,
        "problems": problems,
    }
    return visit.render("telemetry.html", values)


async def subscribe(visit: PageRequest) -> Plan:
    """Plans a subscription of metrics, or its removal."""
    name, removes = visit.field("name"), bool(visit.field("remove", required=False))
    before = next((row for row in await subscriptions(visit.cluster) if row["name"] == name), {})
    if removes and not before:
        raise CommandError(f"subscription {name[:60]}: there is none")
    after = {config: "" if removes else visit.field(config, required=False) for config in CONFIGS}
    if not removes and not after["metrics"]:
        raise misuse("metrics: expected * for all, or prefixes of names, such as org.apache.kafka.producer.")
    owner = ConfigOwner(ResourceKind.CLIENT_METRICS, name)
    names = [config for config in CONFIGS if after[config] or before.get(config)]
    changes = [ConfigChange(config, SET if after[config] else DELETE, after[config] or None) for config in names]

    async def carry_out(*, dry_run: bool = False) -> Sequence[Row]:
        return [await alter_configs(visit.cluster, owner, changes, dry_run=dry_run)]

    for row in await carry_out(dry_run=True):
        if row.get("error"):
            raise CommandError(str(row["error"]))
    words = ["odradek", "config", "unset" if removes else "set", "client-metrics", name]
    words += names if removes else [f"{config}={after[config]}" for config in names if after[config]]
    return Plan(
        "telemetry.unsubscribe" if removes else "telemetry.subscribe",
        name,
        f"{'Remove' if removes else 'Set'} the subscription {name}",
        carry_out,
        "/clients/telemetry",
        ("config", "before", "after"),
        [{"config": config, "before": before.get(config), "after": after[config] or None} for config in names],
        words,
        note="Clients that match push these metrics from their next request on." if not removes else "",
    )
