"""The parts of a debug bundle that a cluster returns, as JSON. A part that fails is in the errors."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final

from commands.client.cluster_client import ClusterClient, outcome
from commands.errors import CommandError, explain, raise_if
from commands.groups.facts import all_places, group_facts, has_lag
from commands.groups.listing import list_groups
from commands.printing import Row, error_of
from commands.records.positions import bounds
from commands.state.configs import ConfigOwner, ResourceKind, config_row, describe_configs, own_configs
from commands.state.examination import Examination
from commands.state.findings import DoctorLimits, findings
from commands.state.quorum import describe_quorum
from commands.state.redaction import SECRET, is_secret
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from protocol.messages.metadata import MetadataResponseTopic
from protocol.types import uuid_to_text

WATCH_MS: Final = 1000
HANGING_MS: Final = 900_000
"""The parameters of the doctor's examination."""

Document = list[Row]


async def documents(cluster: ClusterClient) -> tuple[dict[str, Document], dict[str, str]]:
    """Returns the parts by name, and the errors of parts that can't be read. Raises CommandError if no broker
    answers."""
    topics = (await cluster.metadata(None)).topics
    nodes = await cluster.nodes()
    parts: dict[str, Awaitable[Document]] = {
        "cluster": _cluster(cluster),
        "features": _features(cluster),
        "quorum": _quorum(cluster),
        "topics": _topics(cluster, topics),
        "topic_configs": _topic_configs(cluster, topics),
        "log_dirs": _log_dirs(cluster),
        "groups": _groups(cluster, topics),
        "doctor": _doctor(cluster),
        **{f"configs_of_broker_{node}": _broker_configs(cluster, node) for node in nodes},
    }
    found: dict[str, Document] = {}
    errors: dict[str, str] = {}
    for name, part in parts.items():
        result = await outcome(part)
        if isinstance(result, CommandError):
            errors[name] = result.message
        else:
            found[name] = result
            errors |= {f"{name} {number}": str(row["error"]) for number, row in enumerate(result) if row.get("error")}
    return found, errors


async def _cluster(cluster: ClusterClient) -> Document:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
    answer = await cluster.any(request, DescribeClusterResponse)
    raise_if("the cluster", answer.error_code, answer.error_message)
    return [
        {
            "cluster": answer.cluster_id,
            "broker": broker.broker_id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "fenced": broker.is_fenced,
        }
        for broker in sorted(answer.brokers, key=lambda broker: broker.broker_id)
    ]


async def _features(cluster: ClusterClient) -> Document:
    request = ApiVersionsRequest(client_software_name="odradek", client_software_version="unknown")
    answer = await cluster.any(request, ApiVersionsResponse)
    raise_if("features", answer.error_code)
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    rows: Document = [
        {"feature": feature.name, "level": levels.get(feature.name, 0), "max": feature.max_version}
        for feature in answer.supported_features
    ]
    rows += [{"api": api.api_key, "min": api.min_version, "max": api.max_version} for api in answer.api_keys]
    return rows


async def _quorum(cluster: ClusterClient) -> Document:
    described = await describe_quorum(cluster)
    head: Row = {"leader": described.leader, "epoch": described.epoch, "high_watermark": described.high_watermark}
    replicas = ({**replica._asdict(), "directory": uuid_to_text(replica.directory)} for replica in described.replicas)
    return [head, *replicas]


async def _topics(cluster: ClusterClient, topics: list[MetadataResponseTopic]) -> Document:
    limits = await bounds(cluster, all_places(topics))
    by_name = {topic.name or "": topic for topic in topics}
    rows: Document = []
    for place in sorted(all_places(topics)):
        topic = by_name[place.topic]
        partition = next(entry for entry in topic.partitions if entry.partition_index == place.partition)
        rows.append(
            {
                "topic": place.topic,
                "id": uuid_to_text(topic.topic_id),
                "partition": place.partition,
                "leader": partition.leader_id,
                "epoch": partition.leader_epoch,
                "replicas": partition.replica_nodes,
                "isr": partition.isr_nodes,
                "offline": partition.offline_replicas,
                "start": limits.starts.get(place),
                "end": limits.ends.get(place),
                **error_of(limits.errors.get(place)),
            }
        )
    return rows


async def _topic_configs(cluster: ClusterClient, topics: list[MetadataResponseTopic]) -> Document:
    names = sorted(topic.name or "" for topic in topics)
    configs = await own_configs(cluster, [ConfigOwner(ResourceKind.TOPIC, name) for name in names])
    return [{"topic": name, "configs": _without_secrets(own)} for name, own in zip(names, configs, strict=True)]


def _without_secrets(configs: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: SECRET if is_secret(name) else value for name, value in configs.items()}


async def _broker_configs(cluster: ClusterClient, node: int) -> Document:
    rows = [
        config_row(config) for config in await describe_configs(cluster, ConfigOwner(ResourceKind.BROKER, str(node)))
    ]
    return [{**row, "value": SECRET} if is_secret(str(row["config"])) and row["value"] else row for row in rows]


async def _log_dirs(cluster: ClusterClient) -> Document:
    rows: Document = []
    for node, answer in (await cluster.every(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)).items():
        if isinstance(answer, CommandError) or answer.error_code:
            error = str(answer) if isinstance(answer, CommandError) else explain(answer.error_code)
            rows.append({"broker": node, "error": error})
            continue
        rows += [
            {
                "broker": node,
                "path": entry.log_dir,
                "offline": bool(entry.error_code),
                "total_bytes": entry.total_bytes,
                "free_bytes": entry.usable_bytes,
                "partitions": {
                    f"{topic.name}-{part.partition_index}": part.partition_size
                    for topic in entry.topics
                    for part in topic.partitions
                },
            }
            for entry in answer.results
        ]
    return rows


async def _groups(cluster: ClusterClient, topics: list[MetadataResponseTopic]) -> Document:
    listings = await list_groups(cluster)
    rows: Document = [{"group": None, "coordinator": node, "error": error} for node, error in listings.errors.items()]
    for listing in listings.groups:
        row = listing._asdict()
        if has_lag(listing):
            facts = await outcome(group_facts(cluster, listing, all_places(topics)))
            if isinstance(facts, CommandError):
                row["error"] = facts.message
            else:
                row |= {
                    "lag": facts.lag,
                    "members": [
                        {
                            "member": member.member,
                            "client": member.client,
                            "partitions": list(map(str, member.partitions)),
                        }
                        for member in facts.group.members
                    ],
                    "committed": {str(place): offset for place, offset in facts.committed.items()},
                    "lags": {str(place): lag for place, lag in facts.lags.items()},
                }
        rows.append(row)
    return rows


async def _doctor(cluster: ClusterClient) -> Document:
    facts = await Examination(cluster, WATCH_MS, HANGING_MS).facts()
    return [finding._asdict() for finding in findings(facts, DoctorLimits())]
