"""The commands of scenarios: the classic protocol, offsets, administration, topics and time.

Clients have names. `join g a` is a request of client a in group g, with the latest member id that it got, or the id in
`as=`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from coordinator.engine.result import Reply, Result
from coordinator.group import requests
from coordinator.group.groups import GroupFilter, delete_groups, describe_classic, list_groups, state_key
from coordinator.group.offsets.commit import commit, commit_transactional
from coordinator.group.offsets.delete import delete
from coordinator.group.offsets.fetch import fetch
from coordinator.group.records import EndTransaction
from coordinator.group.state import Client
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write,
)
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.group_requests import fetched_group, join_group, offset_commit, sync_group, txn_offset_commit
from tests.scenarios.runner import Command, Scenario, Words

NEWEST = {"join": 9, "sync": 5, "heartbeat": 4, "leave": 5, "commit": 9, "describe": 6}


def client(words: Words, who: str, default: int) -> Client:
    return Client(words.int("v", default), who, "/127.0.0.1")


def member(scenario: Scenario, words: Words) -> tuple[str, str, str]:
    """Returns the group, the client's name, and the member id that it sends."""
    group_id, who = words.plain
    return group_id, who, scenario.member_id(words.named.get("as", who))


# Topics, options and time.


def topic(scenario: Scenario, words: Words) -> None:
    name, partitions = words.plain
    scenario.create_topic(name, int(partitions))


def delete_topic(scenario: Scenario, words: Words) -> None:
    (name,) = words.plain
    topic_id = scenario.topics.by_name[name].topic_id
    scenario.delete_topic(name)
    scenario.decide(name, partial(scenario.shard.topics_deleted, {name: topic_id}))


def options(scenario: Scenario, words: Words) -> None:
    changed: dict[str, Any] = {name: int(value) for name, value in words.named.items()}
    scenario.settings = scenario.settings._replace(**changed)


def advance(scenario: Scenario, words: Words) -> None:
    (by_ms,) = words.plain
    scenario.advance(int(by_ms))


def reload(scenario: Scenario, words: Words) -> None:
    """Loads the shard again, as another broker that takes over does: only records remain."""
    scenario.reload()


# The classic protocol.


def join(scenario: Scenario, words: Words) -> None:
    group_id, who, _ = member(scenario, words)
    member_name = words.named.get("as", who)
    member_id = scenario.member_ids.get(member_name, "" if member_name == who else member_name)
    topics = words.list("topics", "orders")
    metadata = write(ConsumerProtocolSubscription(topics=topics), 0)
    request = join_group(
        group_id, member_id, words.list("strategies", "range"), metadata, session_ms=words.int("session", 10_000),
        rebalance_ms=words.int("rebalance", 30_000), protocol_type=words.named.get("type", "consumer"),
        group_instance_id=words.named.get("instance"), reason=words.named.get("reason"),
    )  # fmt: skip
    requester = client(words, who, NEWEST["join"])
    scenario.perform(who, requests.join_group, request, requester)


def sync(scenario: Scenario, words: Words) -> None:
    """Sends SyncGroup. `assign=` gives each member partitions of topic orders: a:0+1,b:2."""
    group_id, who, member_id = member(scenario, words)
    given = [argument.split(":") for argument in words.list("assign")]
    assignments = {scenario.member_id(name): assignment(partitions) for name, partitions in given}
    request = sync_group(
        group_id, member_id, words.int("generation", 1), assignments, group_instance_id=words.named.get("instance"),
        protocol_type=words.named.get("type", "consumer"), protocol_name=words.named.get("strategy", "range"),
    )  # fmt: skip
    requester = client(words, who, NEWEST["sync"])
    scenario.perform(who, requests.sync_group, request, requester)


def assignment(partitions: str) -> bytes:
    indexes = [int(index) for index in partitions.split("+") if index]
    assigned = [TopicPartition(topic="orders", partitions=indexes)] if indexes else []
    return write(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)


def heartbeat(scenario: Scenario, words: Words) -> None:
    group_id, who, member_id = member(scenario, words)
    request = HeartbeatRequest(
        group_id=group_id,
        generation_id=words.int("generation", 1),
        member_id=member_id,
        group_instance_id=words.named.get("instance"),
    )
    requester = client(words, who, NEWEST["heartbeat"])
    scenario.perform(who, requests.heartbeat, request, requester)


def leave(scenario: Scenario, words: Words) -> None:
    """Sends LeaveGroup. `leave g a b instance=i` names several members, one of them by its instance id."""
    group_id, *names = words.plain
    members = [MemberIdentity(member_id=scenario.member_id(name)) for name in names]
    if "instance" in words.named:
        members.append(MemberIdentity(member_id="", group_instance_id=words.named["instance"]))
    request = LeaveGroupRequest(group_id=group_id, members=members)
    who = names[0] if names else "admin"
    requester = client(words, who, NEWEST["leave"])
    scenario.perform(who, requests.leave_group, request, requester)
    for name in names:
        scenario.member_ids.pop(name, None)


# Offsets.


def offsets_of(words: Words) -> dict[str, dict[int, int]]:
    """Returns the offsets of `offsets=orders-0:5,orders-1:7` by topic."""
    offsets: dict[str, dict[int, int]] = {}
    for argument in words.list("offsets"):
        name, _, offset = argument.partition(":")
        topic_name, _, index = name.rpartition("-")
        offsets.setdefault(topic_name, {})[int(index)] = int(offset or 0)
    return offsets


def commit_offsets(scenario: Scenario, words: Words) -> None:
    """Commits offsets; without `generation=`, as a consumer without group management."""
    group_id, who, member_id = member(scenario, words)
    is_member = "generation" in words.named
    offsets = offsets_of(words)
    request = offset_commit(
        group_id, offsets, metadata=words.named.get("metadata"),
        ids={name: scenario.topics.by_name[name].topic_id for name in offsets},
        generation_id_or_member_epoch=words.int("generation", -1), member_id=member_id if is_member else "",
        group_instance_id=words.named.get("instance"), retention_time_ms=words.int("retention", -1),
    )  # fmt: skip
    requester = client(words, who, NEWEST["commit"])
    scenario.perform(who, commit, request, requester)


def txn_commit(scenario: Scenario, words: Words) -> None:
    group_id, who = words.plain
    request = txn_offset_commit(group_id, who, (words.int("producer", 1), 0), offsets_of(words))
    requester = client(words, who, 5)
    scenario.perform(who, commit_transactional, request, requester)


def end_txn(scenario: Scenario, words: Words) -> None:
    (result,) = words.plain
    marker = EndTransaction(words.int("producer", 1), 0, result == "commit")
    scenario.decide("transaction", lambda ticket, now: Result((marker,), (Reply(ticket, None),)))


def fetch_offsets(scenario: Scenario, words: Words) -> None:
    (group_id,) = words.plain
    request = fetched_group(group_id, offsets_of(words) or None)
    stable = words.named.get("stable") == "yes"
    scenario.perform("fetch", fetch, request, stable)


def delete_offsets(scenario: Scenario, words: Words) -> None:
    (group_id,) = words.plain
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
        )
        for name, partitions in offsets_of(words).items()
    ]
    request = OffsetDeleteRequest(group_id=group_id, topics=topics)
    requester = Client(0)
    scenario.perform("admin", delete, request, requester)


# Administration.


def groups(scenario: Scenario, words: Words) -> None:
    states, types = map(state_key, words.list("states")), map(str.lower, words.list("types"))
    wanted = GroupFilter(frozenset(states), frozenset(types), list(scenario.shard.state.groups))
    scenario.perform("admin", list_groups, wanted, Client(5))


def describe(scenario: Scenario, words: Words) -> None:
    requester = client(words, "admin", NEWEST["describe"])
    scenario.perform("admin", describe_classic, words.plain, requester)


def remove(scenario: Scenario, words: Words) -> None:
    requester = Client(3)
    scenario.perform("admin", delete_groups, words.plain, requester)


COMMANDS: dict[str, Command] = {
    "topic": topic,
    "delete-topic": delete_topic,
    "options": options,
    "advance": advance,
    "reload": reload,
    "join": join,
    "sync": sync,
    "heartbeat": heartbeat,
    "leave": leave,
    "commit": commit_offsets,
    "txn-commit": txn_commit,
    "end-txn": end_txn,
    "fetch": fetch_offsets,
    "delete-offsets": delete_offsets,
    "groups": groups,
    "describe": describe,
    "delete": remove,
}
