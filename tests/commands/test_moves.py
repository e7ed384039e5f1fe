"""Tests the plans of `odradek cluster balance` and `cluster decommission`."""

from __future__ import annotations

from collections import Counter

import pytest

from commands.state.moves import BrokerSet, Moves, balanced, without
from protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic


def topic(name: str, *replicas: list[int]) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=0,
        name=name,
        partitions=[
            MetadataResponsePartition(
                error_code=0, partition_index=index, leader_id=brokers[0], replica_nodes=brokers, isr_nodes=brokers
            )
            for index, brokers in enumerate(replicas)
        ],
    )


def brokers(*active: int, fenced: tuple[int, ...] = (), **racks: str) -> BrokerSet:
    return BrokerSet({*active}, {*fenced}, {broker: racks.get(f"b{broker}") for broker in (*active, *fenced)})


def loads(topics: list[MetadataResponseTopic], moves: Moves) -> Counter[int]:
    replicas = {
        (one.name, partition.partition_index): partition.replica_nodes for one in topics for partition in one.partitions
    }
    replicas |= {tuple(place): move.after for place, move in moves.items()}  # type: ignore[misc]
    return Counter(broker for held in replicas.values() for broker in held)


def test_replicas_of_all_topics_are_spread_together() -> None:
    topics = [topic("a", [1], [1], [1]), topic("b", [1], [1], [1])]
    assert loads(topics, balanced(topics, brokers(1, 2, 3))) == {1: 2, 2: 2, 3: 2}


def test_a_balanced_cluster_stays_as_it_is() -> None:
    assert balanced([topic("a", [1, 2], [2, 3], [3, 1])], brokers(1, 2, 3)) == {}


def test_a_move_into_fewer_racks_is_left_out() -> None:
    topics = [topic("a", [1, 2], [1, 2], [1, 2])]
    for move in balanced(topics, brokers(1, 2, 3, b1="x", b2="y", b3="x")).values():
        assert {1: "x", 2: "y", 3: "x"}[move.after[0]] != {1: "x", 2: "y", 3: "x"}[move.after[1]]


def test_a_leaving_broker_has_no_replicas_and_the_others_stay() -> None:
    topics = [topic("a", [3, 1], [1, 2], [2, 3]), topic("b", [3], [1])]
    moves = without(topics, 3, brokers(1, 2, 3, 4))
    assert {str(place): move.after for place, move in moves.items()} == {"a-0": [4, 1], "a-2": [2, 4], "b-0": [2]}


def test_a_replica_goes_to_a_rack_of_its_own() -> None:
    moves = without([topic("a", [1, 2])], 2, brokers(1, 2, 3, 4, b1="x", b2="y", b3="x", b4="y"))
    assert [move.after for move in moves.values()] == [[1, 4]]


def test_fenced_brokers_get_nothing_and_too_few_brokers_are_an_error() -> None:
    with pytest.raises(ValueError, match="a-0 has 2 replicas"):
        without([topic("a", [1, 2])], 2, brokers(1, 2, fenced=(3,)))
