"""The overview: brokers, controllers, the findings of the doctor, and throughput."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from cli.times import show_time
from commands.printing import Row
from commands.state.quorum import NOBODY
from console.visit import FIRST_MS, PageRequest
from console.watching import WatchedCluster


async def page(visit: PageRequest) -> Response:
    await visit.watched.ready(FIRST_MS)
    return visit.render("overview.html", _values(visit.watched))


async def live(visit: PageRequest) -> Response:
    return visit.live("overview", lambda: _values(visit.watched))


async def throughput(visit: PageRequest) -> Response:
    """Returns the points of the chart."""
    points = list(visit.watched.rates)
    return JSONResponse(
        {"x": [at // 1000 for at, _ in points], "series": [{"label": "records/s", "y": [rate for _, rate in points]}]}
    )


def _values(cluster: WatchedCluster) -> dict[str, object]:
    now, facts = cluster.sample, cluster.facts
    partitions = [part for topic in now.topics for part in topic.partitions] if now is not None else []
    return {
        "sample": now,
        "facts": facts,
        "findings": cluster.findings,
        "at": show_time(now.now_ms) if now is not None else None,
        "topics": len(now.topics) if now is not None else None,
        "partitions": len(partitions) if now is not None else None,
        "behind": sum(len(part.isr_nodes) < len(part.replica_nodes) for part in partitions) if now else None,
        "offline": sum(part.leader_id < 0 for part in partitions) if now else None,
        "groups": len(now.groups) if now is not None else None,
        "rate": cluster.rates[-1][1] if cluster.rates else None,
        "brokers": broker_rows(cluster),
        "controllers": controller_rows(cluster),
        "quorum": facts.quorum if facts is not None and facts.quorum and facts.quorum.leader != NOBODY else None,
    }


def broker_rows(cluster: WatchedCluster) -> list[Row]:
    """Returns a row for each broker: the partitions that it leads and stores, and its fullest disk."""
    now, facts = cluster.sample, cluster.facts
    if now is None or facts is None:
        return []
    partitions = [part for topic in now.topics for part in topic.partitions]
    rows: list[Row] = []
    for broker in facts.brokers:
        node = broker.broker_id
        disks = [
            disk for disk in facts.disks if disk.broker == node and disk.total_bytes and disk.free_bytes is not None
        ]
        fullest = min(disks, key=lambda disk: (disk.free_bytes or 0) / (disk.total_bytes or 1), default=None)
        rows.append(
            {
                "broker": node,
                "address": f"{broker.host}:{broker.port}",
                "rack": broker.rack,
                "fenced": broker.is_fenced,
                "led": sum(part.leader_id == node for part in partitions),
                "replicas": sum(node in part.replica_nodes for part in partitions),
                "behind": sum(node in part.replica_nodes and node not in part.isr_nodes for part in partitions),
                "free": fullest.free_bytes if fullest else None,
                "total": fullest.total_bytes if fullest else None,
                "offline_disks": sum(disk.is_offline for disk in facts.disks if disk.broker == node),
            }
        )
    return rows


def controller_rows(cluster: WatchedCluster) -> list[Row]:
    """Returns a row for each controller that votes, and each node that follows the metadata."""
    quorum = cluster.facts.quorum if cluster.facts is not None else None
    if quorum is None:
        return []
    return [
        {
            "node": replica.node,
            "role": "leader" if replica.node == quorum.leader else "voter" if replica.is_voter else "observer",
            "log_end": replica.log_end,
            "lag": max(max(other.log_end for other in quorum.replicas) - replica.log_end, 0),
            "caught_up": replica.caught_up_ms if replica.caught_up_ms >= 0 else None,
        }
        for replica in quorum.replicas
    ]
