"""Faults of other systems in followers, new leaders and elections, planted in the real code."""

from __future__ import annotations

from typing import Any

import pytest

from broker.replica import replica_fetcher
from broker.replica.partition import Partition
from coordinator.cluster.brokers import registration
from coordinator.cluster.partitions import change
from coordinator.replication import fetcher
from coordinator.replication.fetcher import Fetcher
from coordinator.replication.truncation import CutTo, ReplicaLog
from storage.epochs import EpochEnd
from storage.log import Log


def followers_cut_at_their_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """1, KIP-101: a replica with an old high watermark truncates its log there, and loses committed records."""
    follow = Fetcher.follow

    def cut(self: Any, key: Any, name: Any, replica: Any, epoch: int) -> Any:
        before = self._partitions.get(key)
        correction = follow(self, key, name, replica, epoch)
        followed = self._partitions[key]
        if followed is not before and correction is None and replica.high_watermark < replica.log_end_offset:
            return self._correct(followed, CutTo(replica.high_watermark))
        return correction

    patch.setattr(Fetcher, "follow", cut)


def followers_cut_at_the_leader_s_word_alone(patch: pytest.MonkeyPatch) -> None:
    """2, KIP-279: if the epochs of two logs diverge further back, the follower truncates too little."""

    def leader_s_word(log: ReplicaLog, diverging: EpochEnd) -> int:
        return min(diverging.end_offset, log.log_end_offset)

    patch.setattr(fetcher, "diverging_offset", leader_s_word)


def an_epoch_begins_with_its_first_record(patch: pytest.MonkeyPatch) -> None:
    """3, KAFKA-7415: a leader that has written nothing doesn't know that its epoch has begun."""
    patch.setattr(Log, "assign_leader_epoch", lambda *_: None)


def the_high_watermark_precedes_the_truncation(patch: pytest.MonkeyPatch) -> None:
    """5, KAFKA-14704: a diverging log adopts the leader's high watermark before its truncation."""
    fetched = Fetcher._partition_fetched

    def early(self: Any, key: Any, data: Any, now_ms: int) -> Any:
        followed = self._partitions.get(key)
        if followed is not None and data.diverging_epoch.epoch >= 0 and not followed.replica.leads:
            replica_fetcher.take_watermarks(followed.replica, data.high_watermark, 0)  # type: ignore[attr-defined]
        return fetched(self, key, data, now_ms)

    patch.setattr(Fetcher, "_partition_fetched", early)


def an_empty_answer_forgets_the_last_epoch(patch: pytest.MonkeyPatch) -> None:
    """7, KAFKA-15510: after an empty answer, a log is no longer compared with the leader's."""
    empty: set[int] = set()
    fetched, fetch_partition = Fetcher._partition_fetched, fetcher._fetch_partition

    def note(self: Any, key: Any, data: Any, now_ms: int) -> Any:
        followed = self._partitions.get(key)
        if followed is not None:
            (empty.discard if data.records else empty.add)(id(followed.replica))
        return fetched(self, key, data, now_ms)

    def forgetful(followed: Any, max_bytes: int) -> Any:
        fetch = fetch_partition(followed, max_bytes)
        if id(followed.replica) in empty:
            fetch.last_fetched_epoch = -1
        return fetch

    patch.setattr(Fetcher, "_partition_fetched", note)
    patch.setattr(fetcher, "_fetch_partition", forgetful)


def a_new_leader_tells_its_end_at_once(patch: pytest.MonkeyPatch) -> None:
    """11, KIP-207: a new leader returns its high watermark before it knows which records are committed."""
    patch.setattr(Partition, "is_behind", False)


def every_stop_counts_as_clean(patch: pytest.MonkeyPatch) -> None:
    """16, KIP-966: a replica that has lost records with the power stays in sync, or eligible."""
    gone = registration._last_incarnation_gone
    patch.setattr(
        registration,
        "_last_incarnation_gone",
        lambda image, broker_id, configs, *, clean: gone(image, broker_id, configs, clean=True),
    )


def a_fenced_replica_is_elected(patch: pytest.MonkeyPatch) -> None:
    """16, KAFKA-19522: the last known leader is elected again before it is back."""
    elect = change.elect

    def hasty(part: Any, isr: Any, elr: Any, replicas: Any, rules: Any) -> Any:
        return elect(part, isr, elr, replicas, rules._replace(is_acceptable=lambda _: True))

    patch.setattr(change, "elect", hasty)
