"""Faults of other systems in leaders, controllers and log directories, planted in the real code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker.fetch import checks
from broker.replica import following
from broker.replica.assignments import Assignments
from coordinator.cluster.brokers import assign_directories, heartbeat
from coordinator.cluster.brokers.info import BrokerRegistration
from coordinator.cluster.image import Image
from coordinator.cluster.partitions import alter_partition
from coordinator.replication import fetcher
from coordinator.replication.fetcher import Fetcher
from coordinator.replication.isr import Follower, IsrRules
from coordinator.replication.roles import Leading
from storage.appending import append
from storage.local_log import LocalLog
from storage.log import Log
from storage.logs import Logs

LATE_S = 0.3


def nobody_is_fenced_by_its_epoch(patch: pytest.MonkeyPatch) -> None:
    """4, KIP-320: a client that takes a follower for the leader gets OFFSET_OUT_OF_RANGE for committed offsets."""
    check: Callable[[Any, int], None] = getattr(checks, "check_readable")  # noqa: B009 (imported there)
    patch.setattr(checks, "check_readable", lambda replica, _: check(replica, -1))


def a_diverging_fetch_is_progress(patch: pytest.MonkeyPatch) -> None:
    """6, KAFKA-13141: a leader counts the fetch of a diverging log as progress of its follower."""
    check = checks.check

    def noted(request: Any, fetched: Any, replica: Any) -> None:
        check(request, fetched, replica)
        checks.note_progress(request.replica, replica, fetched)

    patch.setattr(checks, "check", noted)


def the_former_fetcher_goes_on(patch: pytest.MonkeyPatch) -> None:
    """8, KAFKA-13266: the fetch offset is read while the former fetcher still appends."""
    starts: dict[int, int] = {}
    follow, fetch_partition, replicated, corrected = (
        Fetcher.follow, fetcher._fetch_partition, Fetcher.replicated, Fetcher.corrected,
    )  # fmt: skip
    unfollow = Fetcher.unfollow

    def remember(self: Any, key: Any, name: Any, replica: Any, epoch: int) -> Any:
        with pytest.MonkeyPatch.context() as at_once:
            at_once.setattr(Fetcher, "unfollow", unfollow)
            correction = follow(self, key, name, replica, epoch)
        followed = self._partitions[key]
        starts.setdefault(id(followed), replica.log_end_offset)
        remembered.append(followed)
        return correction

    remembered: list[object] = []

    def late(self: Any, key: Any) -> None:
        followed = self._partitions.get(key)

        def now() -> None:
            if self._partitions.get(key) is followed:
                unfollow(self, key)

        asyncio.get_running_loop().call_later(LATE_S, now)

    def from_there(followed: Any, max_bytes: int) -> Any:
        fetch = fetch_partition(followed, max_bytes)
        fetch.fetch_offset = starts.get(id(followed), fetch.fetch_offset)
        return fetch

    def moved(then: Any) -> Any:
        def move(self: Any, followed: Any) -> None:
            starts[id(followed)] = followed.replica.log_end_offset
            then(self, followed)

        return move

    patch.setattr(Fetcher, "follow", remember)
    patch.setattr(Fetcher, "unfollow", late)
    patch.setattr(Fetcher, "replicated", moved(replicated))
    patch.setattr(Fetcher, "corrected", moved(corrected))
    patch.setattr(fetcher, "_fetch_partition", from_there)
    patch.setattr(following, "check_follows", lambda *_: None)


def damaged_batches_are_taken(patch: pytest.MonkeyPatch) -> None:
    """9, KAFKA-18723: a follower appends damaged batches."""
    patch.setattr(append, "check", lambda *_: None)


def a_log_begins_anew_below_its_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """10, KAFKA-9491: the high watermark of a log that was truncated completely stays unchanged."""
    truncate_fully = LocalLog.truncate_fully

    def forgetful(self: Any, offset: int, now_ms: int, log_start_offset: int | None = None) -> None:
        before = self.high_watermark
        truncate_fully(self, offset, now_ms, log_start_offset)
        self.high_watermark = min(before, offset)

    patch.setattr(LocalLog, "truncate_fully", forgetful)


def former_brokers_are_in_sync(patch: pytest.MonkeyPatch) -> None:
    """13, KIP-841, KIP-903: a broker that fetched before it lost its records joins the ISR as if it had them."""
    patch.setattr(Assignments, "_may_be_in_sync", lambda *_: True)
    patch.setattr(Assignments, "_broker_epoch", lambda *_: -1)
    patch.setattr(alter_partition, "_is_eligible", lambda *_: True)


def former_brokers_are_heard(patch: pytest.MonkeyPatch) -> None:
    """14, KIP-380: requests of a process count for the process that replaced it."""

    def unchecked(image: Image, broker_id: int, _: int) -> BrokerRegistration:
        return image.brokers[broker_id]

    for module in (heartbeat, alter_partition, assign_directories):
        patch.setattr(module, "check_broker_epoch", unchecked)


def who_may_not_join_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    """15, KAFKA-15021: a fenced replica that was caught up holds the high watermark back."""
    committed_offset = Leading.committed_offset

    def held(role: Leading, end: int, min_isr: int, rules: IsrRules, now_ms: int) -> int:
        return committed_offset(role, end, min_isr, IsrRules(anybody, rules.max_lag_ms, rules.broker_epoch), now_ms)

    patch.setattr(Leading, "committed_offset", held)


def who_has_not_all_stays_fenced(patch: pytest.MonkeyPatch) -> None:
    """20, KAFKA-13959: a broker is unfenced only when it has all metadata, instead of the metadata up to its
    registration."""
    decide = heartbeat.broker_heartbeat

    def strict(image: Image, request: Any, configs: Any, _: int | None = None, **rest: bool) -> Any:
        return decide(image, request, configs, image.offset, **rest)

    patch.setattr(heartbeat, "broker_heartbeat", strict)


def anybody(_: Follower) -> bool:
    return True


def a_former_topic_lives_on(patch: pytest.MonkeyPatch) -> None:
    """17, KAFKA-14616: a log of a deleted topic is taken for the log of the new topic with that name."""
    patch.setattr(Assignments, "_set_aside_former", lambda _: None)


def who_was_reassigned_goes_on(patch: pytest.MonkeyPatch) -> None:
    """18, KAFKA-13837: a broker that no longer has a replica continues to serve it, and keeps its log."""
    patch.setattr(Assignments, "_remove", lambda *_: None)


def a_moved_log_has_no_epochs(patch: pytest.MonkeyPatch) -> None:
    """19, KAFKA-15608: a log in another directory lacks the leader epochs of the log that it replaces."""
    swap_future = Logs.swap_future

    def forgetful(self: Any, name: Any, now_ms: int) -> Log:
        moved = swap_future(self, name, now_ms)
        moved.epochs.clear()
        return moved

    patch.setattr(Logs, "swap_future", forgetful)
