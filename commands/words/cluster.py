"""`odradek cluster describe`. `odradek cluster` without a second word starts a cluster."""

from __future__ import annotations

from typing import Final

from cli.actions import Actions
from commands.client.cluster_client import ClusterClient
from commands.errors import CommandError, explain, raise_if
from commands.printing import Row, error_of
from commands.session import Session
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

BROKER_COLUMNS: Final = ("broker", "host", "port", "rack", "fenced", "led", "replicas", "behind", "bytes", "free_bytes")


def declare(actions: Actions) -> None:
    actions.only(describe, concurrent=True, examples=("odradek cluster describe", "odradek cluster describe -o table"))


async def describe(session: Session) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
    answer = await session.cluster.any(request, DescribeClusterResponse)
    raise_if("the cluster", answer.error_code, answer.error_message)
    metadata = await session.cluster.metadata(None)
    partitions = [partition for topic in metadata.topics for partition in topic.partitions]
    disks = await _disks(session.cluster)
    brokers: list[Row] = [
        {
            "broker": broker.broker_id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "fenced": broker.is_fenced,
            "led": sum(partition.leader_id == broker.broker_id for partition in partitions),
            "replicas": sum(broker.broker_id in partition.replica_nodes for partition in partitions),
            "behind": sum(
                broker.broker_id in partition.replica_nodes and broker.broker_id not in partition.isr_nodes
                for partition in partitions
            ),
            **disks.get(broker.broker_id, {}),
        }
        for broker in sorted(answer.brokers, key=lambda node: node.broker_id)
    ]
    head: dict[str, object] = {
        "cluster": answer.cluster_id,
        "brokers": len(brokers),
        "topics": len(metadata.topics),
        "partitions": len(partitions),
        "without_leader": sum(partition.leader_id < 0 for partition in partitions),
    }
    session.output.document(
        {**head, "brokers": brokers}, (("cluster", tuple(head), [head]), ("brokers", BROKER_COLUMNS, brokers))
    )


async def _disks(cluster: ClusterClient) -> dict[int, Row]:
    """Returns the bytes of each broker's partitions, and the free bytes of its fullest disk, None if it doesn't return
    them; or the error of a broker that can't be asked."""
    answers = await cluster.every(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    disks: dict[int, Row] = {}
    for node, answer in answers.items():
        if isinstance(answer, CommandError) or answer.error_code:
            disks[node] = error_of(str(answer) if isinstance(answer, CommandError) else explain(answer.error_code))
            continue
        sizes = [part.partition_size for entry in answer.results for topic in entry.topics for part in topic.partitions]
        free = [entry.usable_bytes for entry in answer.results if entry.usable_bytes >= 0]
        disks[node] = {"bytes": sum(sizes), "free_bytes": min(free, default=None)}
    return disks
