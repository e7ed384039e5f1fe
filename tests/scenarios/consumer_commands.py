"""The commands of scenarios for the consumer protocol (KIP-848).

`enter g a topics=orders` joins as client a, whose name is its member id; `beat g a epoch=2` is a heartbeat, in which
`owned=orders:0+1` has the member's owned partitions. `match` matches patterns, as the broker does.
"""

from __future__ import annotations

from coordinator.group.consumer.describe import describe
from coordinator.group.consumer.heartbeat import heartbeat
from coordinator.group.consumer.patterns import Matched, patterns_matched
from coordinator.group.regex import Resolved, match_all
from coordinator.group.state import Client
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.scenarios.runner import Command, Scenario, Words

NEWEST_VERSION = 1
NO_TIMEOUT = -1
REBALANCE_TIMEOUT_MS = 30_000


def enter(scenario: Scenario, words: Words) -> None:
    _heartbeat(scenario, words, 0, REBALANCE_TIMEOUT_MS, owned(scenario, words) or [])


def beat(scenario: Scenario, words: Words) -> None:
    _heartbeat(scenario, words, words.int("epoch", 1), NO_TIMEOUT, owned(scenario, words))


def owned(scenario: Scenario, words: Words) -> list[TopicPartitions] | None:
    """`owned=` names nothing, or partitions by topic: orders:0+1,bar:2."""
    if "owned" not in words.named:
        return None
    named = [argument.split(":") for argument in words.list("owned")]
    return [
        TopicPartitions(
            topic_id=scenario.topics.by_name[topic].topic_id, partitions=[int(index) for index in indexes.split("+")]
        )
        for topic, indexes in named
    ]


def _heartbeat(
    scenario: Scenario, words: Words, epoch: int, timeout_ms: int, partitions: list[TopicPartitions] | None
) -> None:
    group_id, who = words.plain
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=words.named.get("as", who),
        member_epoch=epoch,
        instance_id=words.named.get("instance"),
        rack_id=words.named.get("rack"),
        rebalance_timeout_ms=words.int("timeout", timeout_ms),
        subscribed_topic_names=words.list("topics") if "topics" in words.named else None,
        subscribed_topic_regex=words.named.get("regex"),
        server_assignor=words.named.get("assignor"),
        topic_partitions=partitions,
    )
    requester = Client(words.int("v", NEWEST_VERSION), who, "/127.0.0.1")
    scenario.perform(who, heartbeat, request, requester)


def match(scenario: Scenario, words: Words) -> None:
    for request in scenario.match_requests:
        topics = match_all(request.patterns, scenario.topics.topic_names())
        version, now_ms = scenario.topics.version, scenario.now_ms
        matched = Matched(
            request.group_id, {pattern: Resolved(names, version, now_ms) for pattern, names in topics.items()}
        )
        scenario.perform("broker", patterns_matched, matched, request.client)
    scenario.match_requests.clear()


def describe_consumer(scenario: Scenario, words: Words) -> None:
    (group_id,) = words.plain
    requester = Client(NEWEST_VERSION)
    scenario.perform("admin", describe, group_id, requester)


def partitions(scenario: Scenario, words: Words) -> None:
    name, count = words.plain
    scenario.add_partitions(name, int(count))


def group_options(scenario: Scenario, words: Words) -> None:
    scenario.config = type(scenario.config).parse(words.named)


def policy(scenario: Scenario, words: Words) -> None:
    (name,) = words.plain
    scenario.settings = scenario.settings._replace(group_consumer_migration_policy=name)


CONSUMER_COMMANDS: dict[str, Command] = {
    "enter": enter,
    "beat": beat,
    "match": match,
    "describe-consumer": describe_consumer,
    "partitions": partitions,
    "group-options": group_options,
    "policy": policy,
}
