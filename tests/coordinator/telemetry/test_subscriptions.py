"""Tests subscriptions, and the metrics that they request from a client (KIP-714)."""

from __future__ import annotations

import pytest

from coordinator.telemetry.subscriptions import (
    ClientAttributes,
    RequestedMetrics,
    Subscription,
    requested_of,
    uuid_hash,
)

JAVA = ClientAttributes("AAAAAAAAAAAAAAAAAAAAAg", "orders-1", "apache-kafka-java", "4.3.1", "10.0.0.7", "5123")
NAMELESS = JAVA._replace(client_id=None)


@pytest.mark.parametrize(("match", "client", "is_match"), [
    ("", JAVA, True),
    ("client_id=orders-.*", JAVA, True),
    ("client_id=orders", JAVA, False),  # the whole of it
    ("client_id=.*", NAMELESS, False),
    (" client_software_name = apache-kafka-java , client_source_address=10\\..*", JAVA, True),
    ("client_software_name=apache-kafka-java,client_source_port=1", JAVA, False),
    ("client_id=(?!payments).*", JAVA, True),  # RE2 has no look around: Python's own matches
    ("client_instance_id=AAAAAAAAAAAAAAAAAAAAAg,client_software_version=4\\..*", JAVA, True),
])  # fmt: skip
def test_every_pattern_matches_the_whole_of_its_attribute(match: str, client: ClientAttributes, is_match: bool) -> None:
    assert Subscription.of({"match": match, "metrics": "*"}).matches(client) is is_match


def test_a_pattern_takes_linear_time_whatever_a_client_calls_itself() -> None:
    subscription = Subscription.of({"match": "client_id=(a+)+b", "metrics": "*"})
    assert not subscription.matches(JAVA._replace(client_id="a" * 30_000))


def test_all_that_match_add_their_metrics_and_the_shortest_interval_counts() -> None:
    subscriptions = [
        Subscription.of({"metrics": "org.b,org.a", "interval.ms": "60000"}),
        Subscription.of({"metrics": "org.a,org.c", "interval.ms": "30000"}),
        Subscription.of({"metrics": "org.d", "interval.ms": "100", "match": "client_id=other"}),
    ]
    assert requested_of(subscriptions, JAVA) == RequestedMetrics(("org.a", "org.b", "org.c"), 30_000)
    assert requested_of(subscriptions[2:], JAVA) == RequestedMetrics((), 300_000)
    everything = Subscription.of({"metrics": "*", "interval.ms": "600000"})
    assert requested_of([*subscriptions, everything], JAVA) == RequestedMetrics(("*",), 30_000)


def test_an_id_changes_with_what_is_wanted_and_with_the_client() -> None:
    one, other = bytes(15) + b"\2", bytes(15) + b"\3"
    ids = [
        RequestedMetrics(("a",), 100).id_for(one),
        RequestedMetrics(("a", "b"), 100).id_for(one),
        RequestedMetrics(("a",), 101).id_for(one),
        RequestedMetrics(("a",), 100).id_for(other),
    ]
    assert len(set(ids)) == 4
    assert all(-(1 << 31) <= value < 1 << 31 for value in ids)


def test_the_hash_of_an_id_is_java_s() -> None:
    assert uuid_hash(bytes(15) + b"\2") == 2
    assert uuid_hash(bytes([255]) * 8 + bytes(8)) == 0
    assert uuid_hash(bytes(4) + b"\0\0\0\7" + b"\0\0\0\1" + bytes(4)) == 6
