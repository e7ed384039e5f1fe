"""`odradek consumers`: consumer groups in ZooKeeper, and the migration of their offsets to Kafka and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cli.actions import Actions
from cli.exits import DONE, FAILED
from cli.flags import YES, ZOOKEEPER
from cli.parser import Parser
from commands.client.cluster_client import ClusterClient
from commands.errors import CommandError
from commands.groups.listing import describe_group, listing_of
from commands.groups.offsets import commit_offsets, committed_offsets
from commands.printing import error_of
from commands.records.positions import LATEST, list_offsets
from commands.session import Session
from commands.zookeeper.assignors import STRATEGIES, Owners
from commands.zookeeper.migration import MigrationStep, plan
from commands.zookeeper.rebalancing import GroupView, unsettled
from commands.zookeeper.znodes import OldGroup, read_group, write_offsets, zookeeper
from protocol.types import TopicPartition

RESTING: Final = frozenset({"Empty", "Dead", ""})
"""States of a group without members."""

SHOWN: Final = ("topic", "partition", "offset", "end", "lag", "owner", "due")
MOVED: Final = ("topic", "partition", "source", "target", "action")


def declare(actions: Actions) -> None:
    actions.add(
        "show",
        "show a group in ZooKeeper: owners, offsets and lag of its partitions",
        show,
        options=_show_options,
        examples=(
            "odradek consumers show billing --zookeeper zk:2181/kafka -o table",
            "odradek consumers show billing --zookeeper zk:2181/kafka --strategy roundrobin",
        ),
        more="OWNER is the consumer thread that has claimed a partition, DUE the thread that the strategy assigns. "
        "While they differ, the group is still rebalancing.",
    )
    actions.add(
        "migrate",
        "copy a group's offsets from ZooKeeper to Kafka, or back",
        migrate,
        options=_migrate_options,
        examples=(
            "odradek consumers migrate billing --zookeeper zk:2181/kafka",
            "odradek consumers migrate billing --zookeeper zk:2181/kafka --yes",
            "odradek consumers migrate billing --zookeeper zk:2181/kafka --into zookeeper --yes",
        ),
        more="Without --yes it only shows the changes. An offset that is larger in the target stays. It can be "
        "repeated.",
    )


def _options(parser: Parser) -> None:
    parser.add_argument("group", metavar="GROUP")
    ZOOKEEPER.add(parser, required=True)


def _show_options(parser: Parser) -> None:
    _options(parser)
    parser.add_argument(
        "--strategy",
        choices=tuple(STRATEGIES),
        default="range",
        help="the consumers' partition.assignment.strategy; default: range",
    )


def _migrate_options(parser: Parser) -> None:
    _options(parser)
    parser.add_argument(
        "--into", choices=("kafka", "zookeeper"), default="kafka", help="where to write the offsets; default: kafka"
    )
    YES.add(parser, help="write the offsets, instead of showing the changes")
    parser.rename("--execute", "--yes")
    parser.rename("--to", "--into")


async def show(session: Session) -> None:
    """Shows a row for each partition that has an owner, an offset or an assigned thread."""
    with zookeeper(session.options.zookeeper) as client:
        group = read_group(client, session.options.group)
    partitions = await _partitions(session.cluster)
    due = _due(session, group, partitions)
    named = sorted({*group.owners, *group.offsets, *due})
    present = [place for place in named if place.partition in partitions.get(place.topic, ())]
    ends, errors = await list_offsets(session.cluster, dict.fromkeys(present, LATEST))
    rows = [
        {
            "topic": place.topic,
            "partition": place.partition,
            "offset": group.offsets.get(place),
            "end": ends.get(place),
            "lag": ends[place] - group.offsets[place] if place in ends and place in group.offsets else None,
            "owner": group.owners.get(place),
            "due": due.get(place),
            **error_of(errors.get(place)),
        }
        for place in named
    ]
    session.output.rows(SHOWN, rows, empty=f"group {session.options.group} has neither members nor offsets")


def _due(session: Session, group: OldGroup, partitions: Mapping[str, Sequence[int]]) -> Owners:
    """Returns the thread that the strategy assigns to each partition, and prints the members that have yet to
    rebalance. Returns none if the assignment can't be computed."""
    strategy = STRATEGIES[session.options.strategy]
    try:
        restless = unsettled(group.owners, GroupView(group.members, partitions, group.brokers), strategy)
        due = strategy(group.members, partitions)
    except ValueError as error:
        session.output.note(str(error))
        return {}
    if restless:
        session.output.note(f"the group is still rebalancing: {', '.join(restless)} will rebalance")
    return due


async def migrate(session: Session) -> int:
    """Shows the differences, and writes them to the target with --yes."""
    name, to_kafka = session.options.group, session.options.into == "kafka"
    cluster = session.cluster
    with zookeeper(session.options.zookeeper) as client:
        group = read_group(client, name)
        committed = await committed_offsets(cluster, name)
        source, target = (group.offsets, committed) if to_kafka else (committed, group.offsets)
        partitions = await _partitions(cluster)
        existing = {TopicPartition(topic, index) for topic, indexes in partitions.items() for index in indexes}
        steps = plan(source, target, existing)
        session.output.rows(MOVED, [_row(step) for step in steps], empty=f"group {name} has no offsets")
        writes = {step.partition: step.source for step in steps if step.writes and step.source is not None}
        if not session.options.yes:
            session.output.note(f"{len(writes)} offsets would be written; --yes writes them")
            return DONE
        await _refuse_running(cluster, name, group)
        if to_kafka:
            errors = await commit_offsets(cluster, name, writes) if writes else {}
        else:
            write_offsets(client, name, writes)
            errors = {}
    for place, error in errors.items():
        session.output.note(f"{place}: the offset was not written: {error}")
    session.output.note(f"{len(writes) - len(errors)} offsets were written")
    return FAILED if errors else DONE


def _row(step: MigrationStep) -> dict[str, object]:
    topic, partition = step.partition
    return {"topic": topic, "partition": partition, "source": step.source, "target": step.target, "action": step.action}


async def _partitions(cluster: ClusterClient) -> dict[str, list[int]]:
    return {
        topic.name or "": [partition.partition_index for partition in topic.partitions]
        for topic in await cluster.topics(None)
    }


async def _refuse_running(cluster: ClusterClient, name: str, group: OldGroup) -> None:
    """Raises CommandError if the group has members: they would continue to commit to the source."""
    if group.members:
        names = ", ".join(entry.consumer_id for entry in group.members)
        raise CommandError(f"group {name} has consumers in ZooKeeper: {names}; stop them first", FAILED)
    listing = await listing_of(cluster, name)
    if listing is None:
        return
    described = await describe_group(cluster, name, listing.type)
    if described.state not in RESTING:
        raise CommandError(f"group {name} has members and is {described.state}; stop them first", FAILED)
