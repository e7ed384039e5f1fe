"""The commands of `odradek`: their names, modules and purposes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

NEEDS_SPARK: Final = (
    "`odradek pipeline` needs {missing}: pip install 'odradek[pipeline]', or make setup-pipeline; "
    "images have only the broker"
)

NEEDS_CONSOLE: Final = "`odradek console` needs {missing}: pip install 'odradek[console]'"
CONSOLE_PACKAGES: Final = ("starlette", "uvicorn", "jinja2")
"""The packages of the extra `console`."""


class Command(NamedTuple):
    """A command. Its module is imported when the command is called, and has `declare(actions)`; the module `program`
    has its PROGRAM. `needs` is the error if a package of the command is not installed."""

    module: str
    purpose: str
    program: str
    needs: str = ""


def _program(module: str, purpose: str) -> Command:
    return Command(module, purpose, "programs.command")


def _cluster(word: str, purpose: str) -> Command:
    return Command(f"commands.words.{word}", purpose, "commands.main")


def _job(purpose: str) -> Command:
    return Command("pipeline.flags", purpose, "pipeline.command", NEEDS_SPARK)


PROGRAMS: Final[dict[str, Command]] = {
    "run": _program("programs.run.commands", "run a broker"),
    "cluster": _program("programs.cluster.commands", "run a controller and several brokers on this machine"),
    "format": _program(
        "programs.format.commands", "format a node's log directories for a cluster, as kafka-storage format does"
    ),
    "info": _program("programs.format.info", "print the owners of a node's log directories"),
    "random-uuid": _program("programs.format.random_id", "print an id for a new cluster or directory"),
    "console": Command("console.command", "see and operate a cluster in the browser", "console.command", NEEDS_CONSOLE),
    "log": _program("programs.log.commands", "print, verify or repair data directories"),
    "profile": Command(
        "commands.profiles", "list, show, create and select profiles of connection settings", "commands.profiles"
    ),
    "completion": Command("cli.completion", "print a completion script for bash, zsh or fish", "cli.completion"),
}
"""Commands that work on this machine."""

CLUSTER_COMMANDS: Final[dict[str, Command]] = {
    "topic": _cluster("topic", "list, create, describe, alter, grow, trim, move and delete topics"),
    "produce": _cluster("produce", "send records to a topic"),
    "consume": _cluster("consume", "read records of topics, by partition or as a member of a group"),
    "group": _cluster("group", "list, describe, reset and delete groups of every type"),
    "share": _cluster("share", "list, describe, consume, reset and delete share groups"),
    "txn": _cluster("txn", "list, describe and abort transactions, and find hanging transactions"),
    "config": _cluster("config", "show and change the configs of topics, brokers and groups"),
    "doctor": _cluster("doctor", "find the faults of a cluster, and the commands that help"),
    "top": _cluster("top", "show topics, groups and clients, continuously"),
    "acl": _cluster("acl", "list, add and delete access control entries"),
    "user": _cluster("user", "list users with SCRAM credentials, set and delete their passwords"),
    "token": _cluster("token", "create, list, renew and expire delegation tokens"),
    "feature": _cluster("feature", "list, upgrade and downgrade the features of a cluster"),
    "quota": _cluster("quota", "list and set quotas of users, clients and addresses"),
    "consumers": _cluster("consumers", "show groups in ZooKeeper, and migrate their offsets to Kafka"),
    "cluster describe": _cluster("cluster", "show a cluster's brokers, with the partitions that they lead and store"),
    "cluster quorum": _cluster("quorum", "show the controllers, their leader, and the lag of the others"),
    "cluster controller": _cluster("controllers", "add and remove voters of the quorum, and unregister controllers"),
    "cluster bundle": _cluster("bundle", "write a file for a report of a fault: configs, metadata, logs, metrics"),
    "cluster balance": _cluster("balance", "spread replicas and leaders evenly over the brokers"),
    "cluster decommission": _cluster("decommission", "move all replicas off a broker, and remove the broker"),
}
"""Commands that connect to a cluster: Odradek's or any other with Kafka's protocol."""

JOBS: Final[dict[str, Command]] = {
    "pipeline generate": _job("write a generated activity stream to a topic"),
    "pipeline load": _job("load ranges of topics into a store of Parquet files, exactly once"),
    "pipeline stream": _job("load into the same store continuously, with Structured Streaming"),
    "pipeline report": _job("analyse an activity stream: Parquet files, and a page with plots"),
    "pipeline mirror": _job("copy topics to another cluster, with partitions, headers and timestamps"),
    "pipeline replay": _job("write a store or Iceberg tables back to topics, in order, at full or at recorded speed"),
    "pipeline audit": _job("compare topics with a store, Iceberg tables or a mirror, and show the differences"),
    "pipeline maintain": _job("merge files of Iceberg tables, expire snapshots, remove orphan files"),
}
"""Jobs over topics on Apache Spark."""

COMMANDS: Final[dict[str, Command]] = {**PROGRAMS, **CLUSTER_COMMANDS, **JOBS}

FAMILIES: Final = {
    "Programs and data on this machine": PROGRAMS,
    "Commands for a cluster": CLUSTER_COMMANDS,
    "Jobs over topics on Apache Spark": JOBS,
}
"""The sections of `odradek --help`."""


class Called(NamedTuple):
    """A command that a line names, and the line's other words."""

    name: str
    command: Command
    words: list[str]


def find(words: list[str]) -> Called | None:
    """Returns the command that the first words name; None if they name none."""
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in COMMANDS:
            return Called(name, COMMANDS[name], words[length:])
    return None


def listing(commands: Mapping[str, Command]) -> str:
    """Returns a line for each command, with its purpose."""
    width = max(map(len, commands), default=0)
    return "\n".join(f"  {name:<{width}}  {command.purpose}" for name, command in commands.items())


def second_words(word: str) -> dict[str, Command]:
    """Returns the commands whose name has two words and begins with `word`, by their second word."""
    return {name.split()[1]: command for name, command in COMMANDS.items() if name.startswith(f"{word} ")}
