"""Whatever is asked of a shard of share partitions' states: it is answered or refused, and nothing else happens."""

from __future__ import annotations

from random import Random

import pytest

from coordinator.engine.result import Ticket
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareResult, ShareSerde
from coordinator.share.settings import ShareSettings
from coordinator.share.shard import ShareShard, StateWrite
from protocol.errors import KafkaError
from protocol.records.compression import Compression
from tests.coordinator.group.consumer_world import Groups
from tests.coordinator.purity import decided

SEEDS, STEPS = 30, 200

NUMBERS = (-(2**31), -2, -1, 0, 1, 2, 5, 2**31 - 1)
OFFSETS = (-(2**63), -2, -1, 0, 1, 5, 9, 2**63 - 1)


class Hostile:
    """A shard, and brokers that write what no share partition would."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        world = Groups()
        topic_ids = [world.create_topic("t", 2), bytes(16)]
        self.keys = [
            ShareKey(group, topic, index) for group in ("g", "") for topic in topic_ids for index in (0, 1, -1)
        ]
        self.shard = ShareShard(lambda: ShareSettings(3, 10_000), world.topics)
        self.shard.activate(1_000, 0)
        self.serde = ShareSerde(lambda: Compression.NONE)
        self.now_ms = 1_000
        self.requested = ""

    def batch(self) -> StateBatch:
        random = self.random
        return StateBatch(
            random.choice(OFFSETS), random.choice(OFFSETS), random.choice((-128, -1, 0, 1, 2, 4, 127)),
            random.choice((-(2**15), 0, 1, 2**15 - 1)),
        )  # fmt: skip

    def epoch(self) -> int:
        return self.random.choice((0, 0, 1, 1, self.random.choice(NUMBERS)))

    def step(self) -> None:
        random, shard = self.random, self.shard
        key = random.choice(self.keys[:2] if random.random() < 0.7 else self.keys)
        written = StateWrite(
            self.epoch(), self.epoch(), random.choice(OFFSETS), random.choice(NUMBERS),
            [self.batch() for _ in range(random.randint(0, 5))],
        )  # fmt: skip
        self.now_ms += random.choice((0, 1, 10_000))
        now_ms = self.now_ms
        ticket: Ticket[object] = Ticket()
        epoch, start_offset = self.epoch(), random.choice(OFFSETS)
        steps = {
            "initialize": lambda: shard.initialize(key, epoch, start_offset, ticket, now_ms),  # type: ignore[arg-type]
            "write": lambda: shard.write(key, written, ticket, now_ms),  # type: ignore[arg-type]
            "read": lambda: shard.read(key, epoch, ticket, now_ms),  # type: ignore[arg-type]
            "summary": lambda: shard.summary(key, ticket, now_ms),  # type: ignore[arg-type]
            "delete": lambda: shard.delete(key, ticket, now_ms),  # type: ignore[arg-type]
            "time": lambda: shard.expire(now_ms),
        }
        (kind,) = random.choices(tuple(steps), (2, 6, 2, 1, 0.5, 1))
        self.requested = f"{kind} {key} {written}"
        try:
            result = decided(shard, steps[kind])
        except KafkaError:
            return
        self.take(result)

    def take(self, result: ShareResult) -> None:
        if result.records:
            for record in self.serde.decode(self.serde.batches(self.serde.encode(result.records, self.now_ms))):
                assert record
            for record in result.records:
                self.shard.apply(record)
        for effect in result.effects:
            effect()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_shard_of_share_states_answers_or_refuses_whatever_is_asked(seed: int) -> None:
    hostile = Hostile(seed)
    for step in range(STEPS):
        try:
            hostile.step()
        except Exception as error:
            raise AssertionError(f"seed {seed}, step {step}: {hostile.requested}") from error
