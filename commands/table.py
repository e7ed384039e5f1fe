"""The commands that talk to a cluster: their names, modules and purposes."""

from __future__ import annotations

from typing import Final, NamedTuple


class ClusterCommand(NamedTuple):
    """A command word after `odradek`. Its module is imported when the command is called, and has `declare(actions)`."""

    module: str
    purpose: str


CLUSTER_COMMANDS: Final[dict[str, ClusterCommand]] = {
    "topic": ClusterCommand(
        "commands.words.topic", "list, create, describe, alter, grow, trim, move and delete topics"
    ),
    "produce": ClusterCommand("commands.words.produce", "send records to a topic"),
    "consume": ClusterCommand(
        "commands.words.consume", "read records of topics, by partition or as a member of a group"
    ),
    "group": ClusterCommand("commands.words.group", "list, describe, reset and delete groups of every type"),
    "share": ClusterCommand("commands.words.share", "list, describe, consume, reset and delete share groups"),
    "txn": ClusterCommand("commands.words.txn", "list, describe and abort transactions, and find hanging ones"),
    "config": ClusterCommand("commands.words.config", "show and change the configs of topics, brokers and groups"),
    "doctor": ClusterCommand("commands.words.doctor", "find the faults of a cluster, and the commands that help"),
    "top": ClusterCommand("commands.words.top", "show topics, groups and clients, continuously"),
    "acl": ClusterCommand("commands.words.acl", "list, add and delete access control entries"),
    "user": ClusterCommand("commands.words.user", "list users with SCRAM credentials, set and delete their passwords"),
    "quota": ClusterCommand("commands.words.quota", "list and set quotas of users, clients and addresses"),
    "consumers": ClusterCommand(
        "commands.words.consumers", "show groups in ZooKeeper, and migrate their offsets to Kafka"
    ),
}

CLUSTER_PURPOSE: Final = "show a cluster's brokers with their partitions, and its controllers"

CLUSTER_WORDS: Final[dict[str, ClusterCommand]] = {
    "describe": ClusterCommand("commands.words.cluster", CLUSTER_PURPOSE),
    "quorum": ClusterCommand("commands.words.cluster", CLUSTER_PURPOSE),
}
"""Words after `odradek cluster` that show a running cluster; all others start a cluster."""


def find(words: list[str]) -> tuple[str, ClusterCommand, list[str]] | None:
    """Returns the command's name, the command and its arguments; None if the words are not a command of the table."""
    if words[:1] == ["cluster"] and len(words) > 1 and words[1] in CLUSTER_WORDS:
        return "cluster", CLUSTER_WORDS[words[1]], words[1:]
    if words and words[0] in CLUSTER_COMMANDS:
        return words[0], CLUSTER_COMMANDS[words[0]], words[1:]
    return None
