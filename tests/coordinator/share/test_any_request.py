"""Sends random requests to a shard of share group state: each is answered or rejected, without other effects."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from coordinator.engine.result import Decision
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareRecord, ShareSerde
from coordinator.share.settings import ShareSettings
from coordinator.share.shard import ShareShard, StateWrite
from protocol.records.compression import Compression
from tests.coordinator.any_request import answered_or_refused, each_accepted
from tests.coordinator.decisions import decisions
from tests.coordinator.driver import Driver
from tests.coordinator.group.world import Groups

SEEDS, STEPS = 30, 200

NUMBERS = (-(2**31), -2, -1, 0, 1, 2, 5, 2**31 - 1)
OFFSETS = (-(2**63), -2, -1, 0, 1, 5, 9, 2**63 - 1)


class Hostile:
    """A shard, and brokers that write invalid state."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        world = Groups()
        topic_ids = [world.create_topic("t", 2), bytes(16)]
        self.keys = [
            ShareKey(group, topic, index) for group in ("g", "") for topic in topic_ids for index in (0, 1, -1)
        ]
        serde = ShareSerde(Compression.NONE)
        self.driver = Driver(
            ShareShard(lambda: ShareSettings(3, 10_000), world.topics),
            lambda records, now_ms: list(serde.decode(serde.batches(serde.encode(records, now_ms)))),
        )
        self.driver.is_doubling = True
        self.driver.machine.activate(self.driver.now_ms, 0)
        self.requested = ""
        self.accepted: set[str] = set()

    def batch(self) -> StateBatch:
        random = self.random
        return StateBatch(
            random.choice(OFFSETS), random.choice(OFFSETS), random.choice((-128, -1, 0, 1, 2, 4, 127)),
            random.choice((-(2**15), 0, 1, 2**15 - 1)),
        )  # fmt: skip

    def epoch(self) -> int:
        return self.random.choice((0, 0, 1, 1, self.random.choice(NUMBERS)))

    def step(self) -> None:
        random, shard = self.random, self.driver.machine
        key = random.choice(self.keys[:2] if random.random() < 0.7 else self.keys)
        written = StateWrite(
            self.epoch(), self.epoch(), random.choice(OFFSETS), random.choice(NUMBERS),
            [self.batch() for _ in range(random.randint(0, 5))],
        )  # fmt: skip
        self.driver.advance(random.choice((0, 1, 10_000)))
        steps: dict[str, Decision[Any, ShareRecord]] = {
            "initialize": partial(shard.initialize, key, self.epoch(), random.choice(OFFSETS)),
            "write": partial(shard.write, key, written),
            "read": partial(shard.read, key, self.epoch()),
            "summary": partial(shard.summary, key),
            "delete": partial(shard.delete, key),
            "topics_deleted": partial(shard.topics_deleted, {key.topic_id}),
        }
        (kind,) = random.choices(tuple(steps), (2, 6, 2, 1, 0.5, 0.5))
        self.requested = f"{kind} {key} {written}"
        before = len(self.driver.log)
        asked = self.driver.send(steps[kind])
        if asked.error is None:
            self.accepted.add(f"shard.{kind}")
        assert len(self.driver.log) - before == len(asked.records), "what is decided can be written and read"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_shard_of_share_states_answers_or_refuses_whatever_is_asked(seed: int) -> None:
    answered_or_refused(Hostile(seed), seed, STEPS)


def test_each_decision_is_made_twice_and_accepted() -> None:
    each_accepted(Hostile, decisions("share"), SEEDS, STEPS)
