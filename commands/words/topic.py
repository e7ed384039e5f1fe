"""`odradek topic`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from cli.actions import Actions
from cli.flags import (
    ASSIGN,
    COUNT,
    DRY_RUN,
    FROM,
    INTERNAL,
    PARTITION,
    PARTITIONS,
    REPLICAS,
    TO,
    TOPIC_CONFIG,
    UNSET,
    UNTIL,
    YES,
    positive,
)
from cli.parser import Parser
from commands.errors import misuse
from commands.printing import Row, error_of
from commands.records.positions import EXPECTED, Bounds, bounds, resolve
from commands.session import Session, add_topics, assignments, chosen_topics
from commands.state.configs import DELETE, SET, ConfigChange, ConfigOwner, ResourceKind, alter_configs, own_configs
from commands.state.topic_changes import create_topics, delete_records, delete_topics, grow_topic
from commands.words.reassign import assigned_partitions, declare_moves
from protocol.lazy import lazy
from protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from protocol.types import TopicPartition, uuid_to_text

if TYPE_CHECKING:
    from commands.records import analyzing
else:  # it needs an event loop, which the other actions do without
    analyzing = lazy("commands.records.analyzing")

ANALYZE_HELP: Final = """\
It reads the records, all of them unless --from, --until or -n say otherwise, and counts them by partition. Sizes are
those of key and value; `half_under` and `99_percent_under` are powers of two that as many records don't exceed. A
stored share of less than 1 is the effect of compression."""

PARTITION_COLUMNS: Final = ("partition", "leader", "epoch", "replicas", "isr", "offline", "start", "end")


def declare(actions: Actions) -> None:
    actions.add(
        "list",
        "list topics",
        list_topics,
        options=_list_options,
        examples=("odradek topic list", "odradek topic list --internal -o table"),
    )
    actions.add(
        "create",
        "create topics",
        create,
        options=_create_options,
        examples=(
            "odradek topic create orders",
            "odradek topic create payments -p 3 -r 1 -c retention.ms=3600000 -c cleanup.policy=compact,delete",
            "odradek topic create orders --if-not-exists",
            "odradek topic create placed --assign 0:1 --assign 1:1 --dry-run",
        ),
    )
    actions.add(
        "describe",
        "show partitions of topics with leaders, replicas and offsets, and the configs that were set",
        describe,
        options=add_topics,
        examples=(
            "odradek topic describe orders",
            "odradek topic describe orders payments -o table",
            "odradek topic describe 'pay*'",
            "odradek topic describe --pattern 'orders|pay.*'",
        ),
    )
    _declare_analyze(actions)
    _declare_changes(actions)
    declare_moves(actions)


def _declare_analyze(actions: Actions) -> None:
    actions.add(
        "analyze",
        "read a topic's records, and show their sizes, rates, keys and codecs",
        analyze,
        concurrent=True,
        options=_analyze_options,
        examples=("odradek topic analyze orders", "odradek topic analyze orders --from @-1h -n 100000"),
        more=ANALYZE_HELP,
    )


def _declare_changes(actions: Actions) -> None:
    actions.add(
        "alter",
        "set or unset configs of a topic",
        alter,
        options=_alter_options,
        examples=(
            "odradek topic alter orders -c retention.ms=600000 -c max.message.bytes=2000000",
            "odradek topic alter orders --unset retention.ms",
        ),
    )
    actions.add(
        "grow",
        "give a topic more partitions",
        grow,
        options=_grow_options,
        examples=("odradek topic grow orders -p 4", "odradek topic grow orders --by 2 --dry-run"),
        more="New records of a key may go to another partition than its old ones. The change can't be undone.",
    )
    actions.add(
        "trim",
        "delete the oldest records of a topic's partitions",
        trim,
        options=_trim_options,
        examples=(
            "odradek topic trim orders --to -100 --yes",
            "odradek topic trim orders --to end --partition 0 --yes",
        ),
        more=f"A position is {EXPECTED}.",
    )
    actions.add(
        "delete",
        "delete topics with all their records",
        delete,
        options=_delete_options,
        examples=("odradek topic delete payments --yes",),
    )


def _names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", nargs="+", metavar="TOPIC")


def _list_options(parser: argparse.ArgumentParser) -> None:
    add_topics(parser)
    INTERNAL.add(parser)


async def list_topics(session: Session) -> None:
    names = await chosen_topics(session, is_optional=True)
    topics = await session.cluster.topics(names or None)
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replicas": max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
            "internal": topic.is_internal,
        }
        for topic in topics
        if names or session.options.internal or not topic.is_internal
    ]
    session.output.rows(("topic", "partitions", "replicas", "internal"), rows, empty="there are no topics")


def _create_options(parser: argparse.ArgumentParser) -> None:
    _names(parser)
    PARTITIONS.add(parser, default=-1, help="number of partitions; default: the brokers' num.partitions")
    REPLICAS.add(parser, default=-1, help="replicas of each partition; default: default.replication.factor")
    TOPIC_CONFIG.add(parser, repeatable=True)
    ASSIGN.add(parser, repeatable=True)
    parser.add_argument("--if-not-exists", action="store_true", help="an existing topic is not an error")
    DRY_RUN.add(parser)


async def create(session: Session) -> int:
    options = session.options
    assigned = assigned_partitions(options.assign)
    if assigned and (options.partitions != -1 or options.replicas != -1):
        raise misuse("--assign determines the partitions and replicas: leave out -p and -r")
    rows = await create_topics(
        session.cluster,
        options.topics,
        partitions=options.partitions,
        replicas=options.replicas,
        assigned=assigned,
        configs=assignments(options.configs, "-c"),
        dry_run=options.dry_run,
        if_not_exists=options.if_not_exists,
    )
    return session.results(("topic", "partitions", "replicas"), rows)


async def describe(session: Session) -> None:
    topics = await session.cluster.topics(await chosen_topics(session))
    resources = [ConfigOwner(ResourceKind.TOPIC, topic.name or "") for topic in topics]
    configs = await own_configs(session.cluster, resources)
    for topic, own in zip(topics, configs, strict=True):
        partitions = await _described_partitions(session, topic)
        head: dict[str, object] = {
            "topic": topic.name,
            "id": uuid_to_text(topic.topic_id),
            "internal": topic.is_internal,
            "configs": dict(sorted(own.items())),
        }
        session.output.document(
            {**head, "partitions": partitions},
            (
                (f"topic {topic.name}", ("id", "internal", "configs"), [head]),
                ("partitions", PARTITION_COLUMNS, partitions),
            ),
        )


async def _described_partitions(session: Session, topic: MetadataResponseTopic) -> list[Row]:
    places = [TopicPartition(topic.name or "", partition.partition_index) for partition in topic.partitions]
    limits = await bounds(session.cluster, places)
    return [_partition_row(partition, place, limits) for partition, place in zip(topic.partitions, places, strict=True)]


def _partition_row(partition: MetadataResponsePartition, place: TopicPartition, limits: Bounds) -> Row:
    return {
        "partition": partition.partition_index,
        "leader": partition.leader_id if partition.leader_id >= 0 else None,
        "epoch": partition.leader_epoch,
        "replicas": partition.replica_nodes,
        "isr": partition.isr_nodes,
        "offline": partition.offline_replicas,
        "start": limits.starts.get(place),
        "end": limits.ends.get(place),
        **error_of(limits.errors.get(place)),
    }


def _alter_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    TOPIC_CONFIG.add(parser, repeatable=True)
    UNSET.add(parser, repeatable=True, help="a config that returns to the brokers' default")
    DRY_RUN.add(parser)


async def alter(session: Session) -> int:
    options = session.options
    changes = [ConfigChange(name, SET, value) for name, value in assignments(options.configs, "-c").items()]
    changes += [ConfigChange(name, DELETE) for name in options.unset]
    if not changes:
        raise misuse("nothing to change: -c NAME=VALUE sets a config, --unset NAME removes it")
    resource = ConfigOwner(ResourceKind.TOPIC, options.topic)
    row = await alter_configs(session.cluster, resource, changes, dry_run=options.dry_run)
    return session.results(("topic",), [{"topic": options.topic, **row}])


def _grow_options(parser: Parser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    count = parser.add_mutually_exclusive_group(required=True)
    PARTITIONS.add(count, help="the new number of partitions")
    count.add_argument("--by", type=positive, metavar="N", help="number of partitions to add")
    parser.rename("--to", "--partitions")
    DRY_RUN.add(parser)


async def grow(session: Session) -> int:
    options = session.options
    count = options.partitions
    if count is None:
        count = len((await session.cluster.topic(options.topic)).partitions) + options.by
    row = await grow_topic(session.cluster, options.topic, count, dry_run=options.dry_run)
    return session.results(("topic", "partitions"), [row])


def _trim_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    TO.add(parser, required=True, help="position of the first record that stays")
    PARTITION.add(parser, repeatable=True)
    YES.add(parser)


async def trim(session: Session) -> int:
    options = session.options
    position = session.position("--to", options.to)
    topic = await session.cluster.topic(options.topic)
    indexes = [partition.partition_index for partition in topic.partitions]
    if unknown := sorted(set(options.partition or ()) - set(indexes)):
        raise misuse(f"--partition {unknown[0]}: {options.topic} has partitions 0 to {len(indexes) - 1}")
    places = [TopicPartition(options.topic, index) for index in options.partition or indexes]
    session.confirm([options.topic], "to delete records of")
    offsets, errors = await resolve(session.cluster, dict.fromkeys(places, position))
    rows = await delete_records(session.cluster, topic, {place.partition: at for place, at in offsets.items()})
    rows += [{**place._asdict(), "error": error} for place, error in errors.items()]
    return session.results(("topic", "partition", "start"), sorted(rows, key=lambda row: int(str(row["partition"]))))


def _analyze_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    FROM.add(parser, help="first position to read; default: start")
    UNTIL.add(parser, help="stop before this position; default: end")
    COUNT.add(parser, help="stop after N records")


async def analyze(session: Session) -> None:
    await analyzing.analyze(session)


def _delete_options(parser: argparse.ArgumentParser) -> None:
    add_topics(parser)
    YES.add(parser)


async def delete(session: Session) -> int:
    topics = await chosen_topics(session)
    session.confirm(topics, "to delete")
    return session.results(("topic",), await delete_topics(session.cluster, topics))
