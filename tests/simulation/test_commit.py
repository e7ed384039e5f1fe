"""Runs a broker whose followers lag: no client sees uncommitted records, or gets an answer that depends on them.

A failing run is its seed: `pytest tests/simulation/test_commit.py -k "seed and 17"`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from broker.replica.partition import Partition
from broker.replica.replica import LogOffsetSnapshot, Replica
from broker.shards.markers import Marker, MarkerWriter
from coordinator.engine.engine import Engine
from coordinator.engine.result import Result
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.segment.file import EMPTY
from tests.simulation.commit_clients import Clients
from tests.simulation.commit_world import Breach, Lag, lagging_world
from tests.simulation.virtual_time import run

SEEDS = range(8)
ROUNDS = 12


async def simulate(seed: int) -> Lag:
    """Runs all clients at once."""
    world, lag = await lagging_world(seed)
    clients = Clients(world, lag)
    following = asyncio.ensure_future(lag.run())
    looking = [
        asyncio.ensure_future(work)
        for work in (
            clients.consume(4, 0, committed=False),
            clients.consume(12, 0, committed=True),
            clients.consume(13, 1, committed=False),
            clients.consume(17, 1, committed=True),
            clients.consume_in_session(committed=False),
            clients.consume_in_session(committed=True),
            clients.list_ends(),
            clients.share(),
        )
    ]
    await asyncio.gather(
        clients.produce(7, ROUNDS),
        clients.produce(12, ROUNDS),
        clients.commit_offsets(ROUNDS),
        clients.transact(ROUNDS // 2, v2=seed % 2 == 0),
    )
    following.cancel()
    lag.catch_up()
    await asyncio.sleep(1)
    for task in looking:
        task.cancel()
    for result in await asyncio.gather(*looking, return_exceptions=True):
        if not isinstance(result, asyncio.CancelledError):
            raise AssertionError(repr(result)) from (result if isinstance(result, BaseException) else None)
    await world.stop()
    return lag


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_seen_or_told_before_it_is_committed(seed: int) -> None:
    lag = run(lambda: simulate(seed))
    assert not lag.breaches
    assert set(lag.checks) == set(Breach)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_run_is_its_seed(seed: int) -> None:
    first, second = (run(lambda: simulate(seed)).trace for _ in range(2))
    assert len(first) > 100
    assert first == second


# The simulation finds what is planted


def reads_go_on_to_the_end(patch: pytest.MonkeyPatch) -> None:
    def read_everything(
        self: Replica, _: LogOffsetSnapshot, offset: int, max_bytes: int, at_least_one: bool
    ) -> memoryview:
        log = self.log
        return EMPTY if offset >= log.log_end_offset else log.view(offset, max_bytes, log.log_end_offset, min_one=True)

    patch.setattr(Replica, "read", read_everything)


def consumers_read_to_the_end(patch: pytest.MonkeyPatch) -> None:
    def beyond(self: Replica, snapshot: LogOffsetSnapshot, isolation_level: int) -> None:
        update_snapshot(self, snapshot, isolation_level)
        snapshot.end = self.log_end_offset

    update_snapshot = Replica.update_snapshot
    patch.setattr(Replica, "update_snapshot", beyond)


def the_end_is_called_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    def beyond(self: Replica, snapshot: LogOffsetSnapshot, isolation_level: int) -> None:
        update_snapshot(self, snapshot, isolation_level)
        snapshot.high_watermark = self.log_end_offset

    update_snapshot = Replica.update_snapshot
    patch.setattr(Replica, "update_snapshot", beyond)


def acks_all_is_answered_at_the_append(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "commit_error", lambda *_: ErrorCode.NONE)


def coordinators_answer_at_the_append(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "when_committed", lambda self, offset, then: then(None))


def coordinators_tell_what_they_have_loaded(patch: pytest.MonkeyPatch) -> None:
    await_commit = Engine._await_commit

    def hasty(self: Engine[Any], key: object, loaded: Any, result: Result[Any], now_ms: int) -> None:
        if result.records or result.replies:
            await_commit(self, key, loaded, result, now_ms)
        else:
            loaded.committed_to = loaded.appended_to

    patch.setattr(Engine, "_await_commit", hasty)


def markers_count_when_they_are_appended(patch: pytest.MonkeyPatch) -> None:
    begin = MarkerWriter.begin

    def hasty(writer: MarkerWriter, name: TopicPartition, marker: Marker) -> Coroutine[Any, Any, None] | None:
        wait = begin(writer, name, marker)
        if wait is not None:
            wait.close()
        return None

    patch.setattr(MarkerWriter, "begin", hasty)


PLANTED: dict[Callable[[pytest.MonkeyPatch], None], Breach] = {
    reads_go_on_to_the_end: Breach.READ,
    consumers_read_to_the_end: Breach.READ,
    the_end_is_called_the_high_watermark: Breach.OFFSET,
    acks_all_is_answered_at_the_append: Breach.ACKNOWLEDGED,
    coordinators_answer_at_the_append: Breach.TRANSACTION,
    coordinators_tell_what_they_have_loaded: Breach.GROUP,
    markers_count_when_they_are_appended: Breach.MARKER,
}


@pytest.mark.source_only
@pytest.mark.parametrize(("plant", "breach"), PLANTED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_fault_that_is_planted_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], breach: Breach, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert breach in run(lambda: simulate(1)).breaches


@pytest.mark.source_only
@pytest.mark.parametrize("plant", [consumers_read_to_the_end, coordinators_answer_at_the_append])
def test_share_groups_find_theirs(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert Breach.SHARED in run(lambda: simulate(2)).breaches
