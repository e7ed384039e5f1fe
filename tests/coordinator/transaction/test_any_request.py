"""Sends random producers' requests to a shard of transactions at any time: each is answered or rejected, without other
effects."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from tests.coordinator.any_request import answered_or_refused, each_accepted
from tests.coordinator.decisions import decisions
from tests.coordinator.transaction.given import Given

SEEDS, STEPS = 30, 150

IDS = ("a", "b", "", "x" * 300)
EPOCHS = (-(2**15), -1, 0, 1, 32_765, 32_766, 32_767)
TIMEOUTS = (-(2**31), -1, 0, 1, 60_000, 900_000, 2**31 - 1)
PARTITIONS = tuple(TopicPartition(topic, index) for topic in ("a", "", "y" * 249) for index in (-1, 0, 2**31 - 1))


DECISIONS = {
    "init": {"shard.init_producer_id"}, "add": {"shard.add_partitions"}, "verify": {"shard.verify_partitions"},
    "commit": {"shard.end"}, "abort": {"shard.end"}, "markers": {"shard.write_on"},
    "late markers": {"shard.markers_written"},
}  # fmt: skip
"""The decisions, by the name of the test's step."""


class Hostile:
    """A shard, producers with invented identities, and a marker writer with failures."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.given = Given(version=self.random.choice((0, 1, 2)))
        self.requested = ""
        self.accepted: set[str] = set()

    def producer(self, name: str) -> Producer:
        """Returns a producer: often the valid one, or one slightly older or newer."""
        transaction = self.given.shard.transactions.get(name)
        if transaction is None or self.random.random() < 0.3:
            return Producer(self.random.choice((-1, 0, 7_000, 7_001, 2**63 - 1)), self.random.choice(EPOCHS))
        return Producer(
            transaction.producer_id,
            max(-(2**15), min(transaction.epoch + self.random.choice((0, 0, 0, -1, 1)), 32_767)),
        )

    def step(self) -> None:
        random, given = self.random, self.given
        name = random.choice(IDS)
        producer, version = self.producer(name), random.randint(0, 2)
        names = random.choices(PARTITIONS, k=random.randint(0, 3))
        timeout_ms = random.choice((60_000, random.choice(TIMEOUTS)))
        given.ids_at_hand = random.random() < 0.8
        done: dict[str, Iterable[TopicPartition]] = {
            transactional_id: random.choice((names, PARTITIONS)) for transactional_id in IDS[:2]
        }
        steps = {
            "init": lambda: given.init(random.choice((None, None, producer)), timeout_ms, name),
            "add": lambda: given.add(producer, *names, version=version, name=name),
            "verify": lambda: given.verify(producer, *names, name=name),
            "commit": lambda: given.commit(producer, version, name),
            "abort": lambda: given.abort(producer, version, name),
            "markers": lambda: given.write_on(done),
            "late markers": lambda: given.markers_written(done),
            "time": lambda: given.pass_time(random.choice((1, 100, 10_000, 60_000, 7_000_000))),
            "restart": given.restart,
        }
        weights = (4, 6, 1, 3, 3, 4, 1, 2, 0.2)
        (kind,) = random.choices(tuple(steps), weights)
        self.requested = f"{kind} {name[:9]!r} {producer} {timeout_ms} {names}"
        before = len(given.log)
        result = steps[kind]()
        if result is not None and not isinstance(result.answer, ErrorCode):
            self.accepted |= DECISIONS.get(kind, set())
        assert result is None or len(given.log) - before == len(result.records), (
            "what is decided can be written and read"
        )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_shard_of_transactions_answers_or_refuses_whatever_is_asked(seed: int) -> None:
    answered_or_refused(Hostile(seed), seed, STEPS)


def test_each_decision_is_made_twice_and_accepted() -> None:
    each_accepted(Hostile, decisions("transaction"), SEEDS, STEPS)
