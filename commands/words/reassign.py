"""`odradek topic reassign` and `topic elect`: the brokers that have a partition's replicas, and its leader."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Final

from cli.actions import Actions
from cli.flags import ASSIGN, PARTITION, REPLICAS, YES, Flag
from cli.parser import Parser
from commands.client.cluster_client import ClusterClient
from commands.errors import explain, misuse, raise_if
from commands.printing import Row
from commands.session import Session
from commands.state.moves import alter_replicas, brokers_of, ongoing
from commands.state.replica_plan import Replicas, spread
from protocol.errors import ErrorCode
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from protocol.messages.metadata import MetadataResponseTopic
from protocol.types import TopicPartition

PREFERRED: Final = 0
UNCLEAN: Final = 1
"""Types of elections (KIP-460; org.apache.kafka.common.ElectionType)."""

ASSIGNMENT: Final = "expected PARTITION:BROKER,BROKER…, such as 0:1,2"

REASSIGN_HELP: Final = """\
Without any option it shows the reassignments in progress. --to-brokers spreads the replicas evenly and moves as few as
possible. Data is copied in the background; old replicas are deleted once the new ones are in sync."""

ELECT_HELP: Final = """\
The preferred leader is the first of a partition's replicas; it becomes the leader if it is in sync. --unclean lets a
replica that is not in sync lead a partition without a leader: the records that it lacks are lost."""


def declare_moves(actions: Actions) -> None:
    actions.add(
        "reassign",
        "move replicas to other brokers, or change their number; only shows the changes without --yes",
        reassign,
        options=_reassign_options,
        examples=(
            "odradek topic reassign orders",
            "odradek topic reassign orders --to-brokers 1",
            "odradek topic reassign orders --assign 0:1 --yes",
            "odradek topic reassign orders --cancel --yes",
        ),
        more=REASSIGN_HELP,
    )
    actions.add(
        "elect",
        "elect the preferred leaders of a topic's partitions",
        elect,
        options=_elect_options,
        examples=("odradek topic elect orders", "odradek topic elect orders --partition 0"),
        more=ELECT_HELP,
    )


def assigned_partitions(texts: Sequence[str]) -> Replicas:
    """Returns the brokers of each partition that --assign names. Raises CommandError."""
    assigned: Replicas = {}
    for text in texts:
        index, _, brokers = text.partition(":")
        if not index.isdecimal():
            raise misuse(f"--assign {text}: {ASSIGNMENT}")
        if int(index) in assigned:
            raise misuse(f"--assign {text}: partition {index} is already assigned")
        assigned[int(index)] = brokers_of(f"--assign {text}", brokers, ASSIGNMENT)
    return assigned


def _reassign_options(parser: Parser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    wish = parser.add_mutually_exclusive_group()
    Flag(("--to-brokers",), "spread the replicas over these brokers", "BROKER,BROKER…", dest="to").add(wish)
    ASSIGN.add(wish, repeatable=True)
    wish.add_argument("--cancel", action="store_true", help="cancel the reassignments in progress")
    REPLICAS.add(parser, help="with --to-brokers: replicas of each partition; default: the current number")
    YES.add(parser, help="move the replicas, instead of showing the changes")
    parser.rename("--to", "--to-brokers")


async def reassign(session: Session) -> int | None:
    """Moves replicas, or shows the reassignments in progress (KIP-455)."""
    options = session.options
    if options.replicas is not None and (not options.to or options.replicas < 1):
        raise misuse(f"-r {options.replicas}: a number of replicas, 1 or more, goes with --to-brokers")
    topic = await session.cluster.topic(options.topic)
    if options.cancel:
        moving = await ongoing(session.cluster, topic)
        plan: Mapping[int, list[int] | None] = dict.fromkeys(place.partition for place in moving)
        return await _carry_out(session, topic, plan, "would be cancelled", "cancelled")
    if not options.to and not options.assign:
        rows = list((await ongoing(session.cluster, topic)).values())
        columns = ("topic", "partition", "replicas", "adding", "removing")
        session.output.rows(columns, rows, empty="nothing is being moved")
        return None
    return await _carry_out(session, topic, _planned(session, topic), "would be moved", "is being moved")


def _planned(session: Session, topic: MetadataResponseTopic) -> Replicas:
    """Returns the new replicas of the partitions whose replicas change. Raises CommandError."""
    options = session.options
    current = {partition_.partition_index: partition_.replica_nodes for partition_ in topic.partitions}
    if options.assign:
        wishes = assigned_partitions(options.assign)
        if missing := sorted(wishes.keys() - current.keys()):
            raise misuse(f"--assign {missing[0]}: {topic.name} has partitions 0 to {len(current) - 1}")
    else:
        brokers = brokers_of(f"--to-brokers {options.to}", options.to, "expected BROKER,BROKER…, such as 1,2")
        try:
            wishes = spread(current, brokers, options.replicas)
        except ValueError as error:
            raise misuse(f"--to-brokers {options.to}: {error}") from None
    return {partition: brokers for partition, brokers in wishes.items() if brokers != current[partition]}


async def _carry_out(
    session: Session, topic: MetadataResponseTopic, plan: Mapping[int, list[int] | None], planned: str, done: str
) -> int:
    """Shows a plan, and starts it with --yes. The replicas of a reassignment to cancel are None."""
    name = topic.name or ""
    before = {index.partition_index: index.replica_nodes for index in topic.partitions}
    rows: list[dict[str, object]] = [
        {"topic": name, "partition": index, "replicas": before[index], "new": plan[index], "result": planned}
        for index in sorted(plan)
    ]
    if session.options.yes and plan:
        errors = await alter_replicas(session.cluster, {TopicPartition(name, index): plan[index] for index in plan})
        for row, partition in zip(rows, sorted(plan), strict=True):
            row |= {"error": error} if (error := errors.get(TopicPartition(name, partition))) else {"result": done}
    status = session.results(("topic", "partition", "replicas", "new"), rows)
    if not plan:
        session.output.note("odradek: nothing to change")
    elif not session.options.yes:
        session.output.note("odradek: nothing was changed; --yes carries it out")
    return status


def _elect_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    PARTITION.add(parser, repeatable=True)
    parser.add_argument(
        "--unclean", action="store_true", help="elect a replica that is not in sync, if there is no leader"
    )
    YES.add(parser, help="with --unclean: do not ask for confirmation")


async def elect(session: Session) -> int:
    options = session.options
    topic = await session.cluster.topic(options.topic)
    indexes = [partition.partition_index for partition in topic.partitions]
    if unknown := sorted(set(options.partition or ()) - set(indexes)):
        raise misuse(f"--partition {unknown[0]}: {options.topic} has partitions 0 to {len(indexes) - 1}")
    if options.unclean:
        session.confirm([options.topic], "an unclean election, which loses records, for")
    partitions = sorted(set(options.partition or indexes))
    rows = await _elect(session.cluster, options.topic, partitions, is_unclean=options.unclean)
    return session.results(("topic", "partition"), rows)


async def _elect(cluster: ClusterClient, topic: str, partitions: Sequence[int], *, is_unclean: bool) -> list[Row]:
    request = ElectLeadersRequest(
        election_type=UNCLEAN if is_unclean else PREFERRED,
        topic_partitions=[TopicPartitions(topic=topic, partitions=list(partitions))],
        timeout_ms=cluster.timeout_ms,
    )
    answer = await cluster.controller(request, ElectLeadersResponse)
    raise_if(f"topic {topic}", answer.error_code)
    codes = {
        partition.partition_id: (partition.error_code, partition.error_message)
        for entry in answer.replica_election_results
        for partition in entry.partition_result
    }
    return [
        {"topic": topic, "partition": partition, **_elected(*codes.get(partition, (0, None)))}
        for partition in partitions
    ]


def _elected(code: int, message: str | None) -> dict[str, object]:
    if code == ErrorCode.ELECTION_NOT_NEEDED:
        return {"result": "has it already"}
    return {"error": explain(code, message)} if code else {"result": "elected"}
