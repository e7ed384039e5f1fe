"""Finds the faults of a cluster from its facts: a sentence and a helpful command for each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from commands.groups.listing import SHARE
from commands.state.examination import ClusterFacts, GroupCourse
from commands.state.quorum import NOBODY
from protocol.types import TopicPartition, uuid_to_text

ERROR: Final = "error"
WARNING: Final = "warning"
UNSEEN: Final = "unseen"
"""Severities: a fault now; a coming fault or a slowdown; a part that could not be read."""

GIB: Final = 1 << 30

REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})

SILENT_MS: Final = 30_000
"""Time without catching up after which a controller counts as absent (kafka-metadata-quorum already reports a lag after
its fetch interval, half a second)."""


class DoctorLimits(NamedTuple):
    """The limits beyond which a value is a finding."""

    lag: int = 1000
    """The lag of a group, in records."""
    free_percent: float = 10.0
    """The free space of a disk."""


class Diagnosis(NamedTuple):
    """A fault of the cluster."""

    severity: str
    subject: str
    sentence: str
    command: str
    """The command that helps, or shows more."""


def findings(facts: ClusterFacts, limits: DoctorLimits) -> list[Diagnosis]:
    """Returns the faults, the worst first."""
    listed = [finding for check in CHECKS for finding in check(facts, limits)]
    return sorted(listed, key=lambda finding: (ERROR, WARNING, UNSEEN).index(finding.severity))


def fenced_brokers(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    for broker in facts.brokers:
        if broker.is_fenced:
            yield Diagnosis(
                ERROR,
                f"broker {broker.broker_id}",
                f"broker {broker.broker_id} is registered, but sends no heartbeats to the controllers.",
                "odradek cluster describe",
            )


def unreachable_brokers(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    for broker, reason in facts.unreachable.items():
        yield Diagnosis(
            ERROR,
            f"broker {broker}",
            f"broker {broker} is not fenced, but this command can't reach it: {reason}.",
            "odradek cluster describe",
        )


def offline_partitions(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    offline = [(place, partition) for place, partition in facts.partitions if partition.leader_id < 0]
    for topic, indexes in _by_topic(place for place, _ in offline):
        replicas = sorted(
            {node for place, partition in offline if place.topic == topic for node in partition.replica_nodes}
        )
        yield Diagnosis(
            ERROR,
            f"topic {topic}",
            f"{_partitions(topic, indexes)} no leader, and can neither be read nor written: no in-sync replica runs "
            f"on the brokers {_listed(replicas)}.",
            f"odradek topic describe {topic}",
        )


def below_min_isr(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    short = [
        (place, len(partition.isr_nodes))
        for place, partition in facts.partitions
        if partition.leader_id >= 0
        and len(partition.isr_nodes) < min(facts.min_isr.get(place.topic, 1), len(partition.replica_nodes))
    ]
    for topic, indexes in _by_topic(place for place, _ in short):
        fewest = min(count for place, count in short if place.topic == topic)
        yield Diagnosis(
            ERROR,
            f"topic {topic}",
            f"{_partitions(topic, indexes)} {fewest} in-sync replicas, fewer than the {facts.min_isr[topic]} of "
            "min.insync.replicas: producers with acks=all are rejected.",
            "odradek cluster describe",
        )


def under_replicated(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    behind = [
        (place, set(partition.replica_nodes) - set(partition.isr_nodes))
        for place, partition in facts.partitions
        if partition.leader_id >= 0 and set(partition.replica_nodes) - set(partition.isr_nodes)
    ]
    for topic, indexes in _by_topic(place for place, _ in behind):
        brokers = sorted({node for place, nodes in behind if place.topic == topic for node in nodes})
        yield Diagnosis(
            WARNING,
            f"topic {topic}",
            f"{_partitions(topic, indexes)} replicas that are not in sync, on the brokers {_listed(brokers)}.",
            f"odradek topic describe {topic}",
        )


def offline_disks(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    for disk in facts.disks:
        if disk.is_offline:
            yield Diagnosis(
                ERROR,
                f"broker {disk.broker}",
                f"broker {disk.broker} has lost its log directory {disk.path}: its replicas there are offline until "
                "the disk is repaired and the broker started again.",
                "odradek cluster describe",
            )


def full_disks(facts: ClusterFacts, limits: DoctorLimits) -> Iterator[Diagnosis]:
    for disk in facts.disks:
        if not disk.total_bytes or disk.free_bytes is None or disk.is_offline:
            continue
        percent = disk.free_bytes / disk.total_bytes * 100
        if percent < limits.free_percent:
            yield Diagnosis(
                WARNING,
                f"broker {disk.broker}",
                f"broker {disk.broker} has {percent:.1f} % of its disk left at {disk.path}, "
                f"{disk.free_bytes / GIB:.1f} of {disk.total_bytes / GIB:.1f} GiB.",
                "odradek topic alter TOPIC -c retention.bytes=N",
            )


def quorum_without_leader(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    if facts.quorum is not None and facts.quorum.leader == NOBODY:
        yield Diagnosis(
            ERROR,
            "controllers",
            "the controllers have no leader: nothing about the cluster can change until more than half of them run.",
            "odradek cluster quorum",
        )


def silent_controllers(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    if facts.quorum is None or facts.quorum.leader == NOBODY:
        return
    voters = facts.quorum.voters
    now_ms = max((voter.caught_up_ms for voter in voters), default=-1)
    silent = [
        voter
        for voter in voters
        if voter.node != facts.quorum.leader and now_ms >= 0 and now_ms - voter.caught_up_ms > SILENT_MS
    ]
    may_fail = (len(voters) - 1) // 2 - len(silent)
    for voter in silent:
        since = "ever" if voter.caught_up_ms < 0 else f"for {(now_ms - voter.caught_up_ms) // 1000} s"
        left = f"{'no other' if may_fail <= 0 else f'{may_fail} more'} of the {len(voters)} may fail"
        yield Diagnosis(
            ERROR if may_fail <= 0 else WARNING,
            f"controller {voter.node}",
            f"controller {voter.node} has not caught up with the leader {since}; {left}.",
            "odradek cluster quorum",
        )


def replaced_directories(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    """A voter whose disk was replaced follows as an observer with a new directory id; the lost one still counts."""
    if facts.quorum is None:
        return
    for voter in facts.quorum.voters:
        # A directory that was replaced before stays an observer for minutes, but fetches no longer.
        later = [now for now in facts.quorum.observers if now.node == voter.node and now.fetched_ms > voter.fetched_ms]
        if any(voter.directory) and later:
            now = max(later, key=lambda replica: replica.fetched_ms)
            lost = uuid_to_text(voter.directory)
            yield Diagnosis(
                ERROR,
                f"controller {voter.node}",
                f"controller {voter.node} runs with a new directory, {uuid_to_text(now.directory)}, and doesn't vote: "
                f"its former directory {lost} is the voter. Remove that, then add the controller.",
                f"odradek cluster controller remove {voter.node} --directory {lost} --yes",
            )


def idle_controllers(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    """A controller that follows the metadata, but isn't a voter."""
    if facts.quorum is None:
        return
    others = {voter.node for voter in facts.quorum.voters} | {broker.broker_id for broker in facts.brokers}
    for replica in facts.quorum.observers:
        if replica.node not in others:
            yield Diagnosis(
                WARNING,
                f"controller {replica.node}",
                f"controller {replica.node} follows, but doesn't vote.",
                f"odradek cluster controller add {replica.node} --yes",
            )


def even_quorum(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    voters = [] if facts.quorum is None else facts.quorum.voters
    if voters and len(voters) % 2 == 0:
        may_fail = (len(voters) - 1) // 2
        yield Diagnosis(
            WARNING,
            "controllers",
            f"the quorum has {len(voters)} voters, of which {may_fail or 'none'} may fail, as with {len(voters) - 1}: "
            "add or remove one.",
            "odradek cluster controller add ID",
        )


def static_voters(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    quorum = facts.quorum
    if quorum is None or len(quorum.voters) < 2 or not quorum.listeners:
        return  # without addresses, the answer is of a version without directory ids, too
    if not any(any(voter.directory) for voter in quorum.voters):
        yield Diagnosis(
            WARNING,
            "controllers",
            "the voters are in the configuration (controller.quorum.voters): none can be added, removed or replaced.",
            "odradek feature upgrade kraft.version=1",
        )


def hanging_transactions(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    for row in facts.hanging:
        place = f"{row['topic']}-{row['partition']}"
        yield Diagnosis(
            ERROR,
            f"topic {row['topic']}",
            f"a transaction of producer {row['producer']} has been hanging in {place} since {row['last_write']}: "
            f"consumers with read_committed can't read past offset {row['start_offset']}.",
            f"odradek txn abort {row['topic']}:{row['partition']} --start-offset {row['start_offset']}",
        )


def flapping_groups(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    for course in facts.groups:
        before, after = course.before.group, course.after.group
        members = {member.member for member in before.members}, {member.member for member in after.members}
        is_stuck = before.state in REBALANCING and after.state in REBALANCING
        if is_stuck or before.epoch != after.epoch or members[0] != members[1]:
            change = f"it is {after.state} with {len(members[1])} members"
            if members[0] != members[1]:
                change = f"{len(members[0] - members[1])} members left, {len(members[1] - members[0])} joined"
            yield Diagnosis(
                WARNING,
                f"group {after.group}",
                f"group {after.group} rebalanced while it was watched for {_seconds(facts.watched_ms)}: {change}.",
                f"odradek group members {after.group}",
            )


def lagging_groups(facts: ClusterFacts, limits: DoctorLimits) -> Iterator[Diagnosis]:
    for course in facts.groups:
        if course.after.known_lag > limits.lag and (why := _why_it_lags(course, facts.watched_ms)):
            group = course.after.group
            worst = max(course.after.lags, key=lambda place: course.after.lags[place])
            yield Diagnosis(
                WARNING,
                f"group {group.group}",
                f"group {group.group} has {course.after.known_lag} records left, {course.after.lags[worst]} of them in "
                f"{worst}, and {why}.",
                f"odradek {'share' if group.type == SHARE else 'group'} describe {group.group}",
            )


def _why_it_lags(course: GroupCourse, watched_ms: int) -> str:
    """Returns why a group doesn't catch up; "" if it does."""
    before, after = course
    if not after.group.members and after.group.state not in REBALANCING:
        return "it has no members"
    if after.group.type != SHARE and before.committed == after.committed:
        return f"it has committed nothing for {_seconds(watched_ms)}"
    if after.known_lag > before.known_lag:
        return f"the lag has grown by {after.known_lag - before.known_lag} in {_seconds(watched_ms)}"
    return "" if after.known_lag < before.known_lag else f"the lag has not fallen for {_seconds(watched_ms)}"


def throttled_client(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    if facts.throttled_ms > 0:
        yield Diagnosis(
            WARNING,
            "this client",
            f"a quota throttled this client for {facts.throttled_ms} ms; it applies to all clients of its user and "
            "client.id.",
            "odradek quota list",
        )


def unseen_parts(facts: ClusterFacts, _: DoctorLimits) -> Iterator[Diagnosis]:
    for part, reason in facts.unseen:
        helps = "odradek acl list" if "AUTHORIZATION" in reason else "odradek cluster describe"
        yield Diagnosis(UNSEEN, part, f"{part} could not be read: {reason}.", helps)


Check = Callable[[ClusterFacts, DoctorLimits], Iterator[Diagnosis]]

CHECKS: Final[tuple[Check, ...]] = (
    quorum_without_leader,
    offline_partitions,
    below_min_isr,
    fenced_brokers,
    unreachable_brokers,
    offline_disks,
    hanging_transactions,
    silent_controllers,
    replaced_directories,
    idle_controllers,
    even_quorum,
    static_voters,
    under_replicated,
    full_disks,
    flapping_groups,
    lagging_groups,
    throttled_client,
    unseen_parts,
)


def _by_topic(places: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(places):
        topics.setdefault(topic, []).append(index)
    return list(topics.items())


def _partitions(topic: str, indexes: list[int]) -> str:
    """Returns the beginning of a sentence about partitions, up to its verb."""
    if len(indexes) == 1:
        return f"{topic}-{indexes[0]} has"
    return f"the partitions {_listed(indexes)} of {topic} have"


def _listed(numbers: Iterable[int], most: int = 10) -> str:
    listed = list(numbers)
    rest = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(map(str, listed[:most])) + rest


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"
