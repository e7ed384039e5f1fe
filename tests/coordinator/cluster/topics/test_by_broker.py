"""Compares partitions by broker with a search of all partitions, after any changes."""

from __future__ import annotations

from random import Random

from coordinator.cluster.image import Image
from coordinator.cluster.partitions.changes import eligible, in_sync, leaderless, leads_any
from coordinator.cluster.topics.topic import NO_LEADER
from protocol.metadata_records.topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.coordinator.cluster import given

BROKERS = (1, 2, 3, 4)


def seen(image: Image) -> list[object]:
    """Returns the lookups in the indexes."""
    lookups = [leaderless(image), *(in_sync(image, one) for one in BROKERS), *(eligible(image, one) for one in BROKERS)]
    places = [sorted((topic.name, index) for topic, index in lookup) for lookup in lookups]
    return [*places, *(leads_any(image, one) for one in BROKERS)]


def scanned(image: Image) -> list[object]:
    """Returns the same by a search of all partitions."""
    partitions = [(topic.name, index, one) for topic in image.topics() for index, one in topic.partitions.items()]
    return [
        sorted((name, index) for name, index, one in partitions if one.leader == NO_LEADER),
        *(sorted((name, index) for name, index, one in partitions if broker in one.isr) for broker in BROKERS),
        *(sorted((name, index) for name, index, one in partitions if broker in one.elr) for broker in BROKERS),
        *(any(one.leader == broker for _, _, one in partitions) for broker in BROKERS),
    ]


def some(dice: Random) -> list[int]:
    return dice.sample(BROKERS, dice.randint(0, len(BROKERS)))


def step(image: Image, dice: Random, number: int) -> None:
    topics = list(image.topics())
    kind = dice.choices(["topic", "partition", "change", "clear", "remove"], [2, 4, 20, 1, 1])[0] if topics else "topic"
    if kind == "topic":
        image.apply(TopicRecord(name=f"t{number}", topic_id=number.to_bytes(16)))
        return
    topic = dice.choice(topics)
    index = dice.randrange(3)
    if kind == "remove":
        image.apply(RemoveTopicRecord(topic_id=topic.topic_id))
    elif kind == "clear":
        image.apply(ClearElrRecord(topic_name=topic.name))
    elif kind == "partition" or index not in topic.partitions:
        leader = dice.choice([NO_LEADER, *BROKERS])
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic.topic_id,
            replicas=[*BROKERS],
            isr=some(dice),
            leader=leader,
            removing_replicas=[],
            adding_replicas=[],
        )
        record.eligible_leader_replicas = some(dice) or None
        image.apply(record)
    else:
        change = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id)
        change.isr = dice.choice([None, some(dice)])
        change.leader = dice.choice([-2, -2, NO_LEADER, *BROKERS])
        change.eligible_leader_replicas = dice.choice([None, some(dice)])
        image.apply(change)


def test_indexes_find_what_a_look_at_all_partitions_finds() -> None:
    dice, image = Random(7), given.image()
    for number in range(1, 1500):
        step(image, dice, number)
        assert seen(image) == scanned(image)
    other = image.copy()
    image.apply(RemoveTopicRecord(topic_id=next(image.topics()).topic_id))
    assert seen(other) == scanned(other) != seen(image) == scanned(image)


def test_what_is_asked_of_a_broker_costs_what_it_has() -> None:
    partitions = given.topic("many", 3_000, leader=1, isr=(1,), replicas=(1,))
    image = given.image(
        *partitions, *given.topic("one", topic_id=b"another-topic---", leader=2, isr=(2,), replicas=(2,))
    )
    assert not leads_any(image, 3)
    many = image.topic("many")
    assert many is not None
    many.partitions = {}  # whoever looks there now finds nothing
    assert leads_any(image, 1)
    assert [(topic.name, index) for topic, index in in_sync(image, 2)] == [("one", 0)]
