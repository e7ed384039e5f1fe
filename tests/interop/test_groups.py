"""Tests groups of real consumers: each client, mixed, with members that come and go, and kills of members and of the
broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent
from tests.interop.members import (
    BY_NAME,
    COUNT,
    FLAVOURS,
    PARTITIONS,
    Flavour,
    Member,
    everything_seen,
    is_shared,
    share_and_give_up,
    static,
    write,
)
from tests.waiting import wait_until

CLIENT = Confluent()

Join = Callable[[Flavour], Member]


@pytest.fixture
def properties() -> dict[str, str]:
    return {"group.initial.rebalance.delay.ms": "200"}


@pytest.fixture
def join(broker: Broker, topic: str, tmp_path: Path) -> Iterator[Join]:
    """Adds a member to the group of the test, which has the topic's name."""
    joined: list[Member] = []

    def start(flavour: Flavour) -> Member:
        joined.append(Member(flavour, broker.bootstrap, topic, topic, tmp_path / f"{flavour.name}.log"))
        return joined[-1]

    yield start
    for member in joined:
        member.kill()


def make(broker: Broker, topic: str) -> None:
    CLIENT.create(broker.bootstrap, topic, partitions=PARTITIONS)


def rebalances(broker: Broker) -> int:
    """Returns the number of rebalances that have begun, according to the broker's log."""
    return Path(f"{broker.data}.log").read_text().count('"event": "rebalance"')


def flavours() -> list[object]:
    marks = {True: [pytest.mark.odradek_only], False: []}
    return [pytest.param(flavour, id=flavour.name, marks=marks[flavour.odradek_only]) for flavour in FLAVOURS]


@pytest.mark.parametrize("flavour", flavours())
def test_three_consumers_share_a_topic_and_give_it_up_in_turn(
    flavour: Flavour, broker: Broker, topic: str, join: Join
) -> None:
    make(broker, topic)
    share_and_give_up(broker, topic, lambda: join(flavour))


def test_consumers_of_different_clients_are_one_group(broker: Broker, topic: str, join: Join) -> None:
    make(broker, topic)
    members = [join(BY_NAME[name]) for name in ("kafka-python", "confluent", "java-4.3.1", "aiokafka-range")]
    is_shared(members)
    write(broker, topic)
    everything_seen(members)


@pytest.mark.parametrize("name", ["confluent", "confluent-cooperative", "java-4.3.1-cooperative"])
def test_no_record_is_skipped_while_members_come_and_go(name: str, broker: Broker, topic: str, join: Join) -> None:
    flavour = BY_NAME[name]
    make(broker, topic)
    members = [join(flavour)]
    for round_ in range(6):
        write(broker, topic, COUNT // 2)
        if round_ % 3 == 2:
            members[round_ // 3].kill()
        elif round_ % 3 == 1:
            members[-1].leave()
            members.append(join(flavour))
        else:
            members.append(join(flavour))
        time.sleep(0.5)  # members come and go in the middle of rebalances, or after them
    everything_seen(members, 6 * (COUNT // 2))


@pytest.mark.parametrize("kind", ["confluent", "java", "kafka-python"])
def test_a_static_member_that_restarts_in_time_takes_its_partitions_again(
    kind: str, broker: Broker, topic: str, join: Join
) -> None:
    make(broker, topic)
    write(broker, topic)
    members = [join(static(kind, "one"))]
    is_shared(members)  # the first is the leader: kafka-python's leader may rebalance the group once it has metadata
    members.append(join(static(kind, "two")))
    is_shared(members)
    everything_seen(members)
    changes = len(members[0].assignments)
    before = members[1].owned
    members[1].leave()  # a static member does not tell the group
    again = join(static(kind, "two"))
    wait_until(lambda: again.owned == before, lambda: (again.owned, before, again.errors))
    assert len(members[0].assignments) == changes, "the other member went through a rebalance"
    write(broker, topic)
    everything_seen([*members, again], 2 * COUNT)


@pytest.mark.odradek_only  # whose log tells when
@pytest.mark.parametrize(
    "name", ["kafka-python", "confluent", "confluent-cooperative", "java-4.3.1", "kafkajs", "aiokafka"]
)
def test_consumers_go_on_when_the_broker_is_killed_in_a_rebalance(
    name: str, broker: Broker, topic: str, join: Join
) -> None:
    flavour = BY_NAME[name]
    make(broker, topic)
    write(broker, topic)
    members = [join(flavour), join(flavour)]
    is_shared(members)
    everything_seen(members)
    before = rebalances(broker)
    members.append(join(flavour))
    wait_until(lambda: rebalances(broker) > before, lambda: "no rebalance")
    broker.kill9()
    broker.start()
    write(broker, topic)
    everything_seen(members, 2 * COUNT)
    is_shared(members)
