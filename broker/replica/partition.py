"""Partition: a replica with its role, and the only way to append to it and to commit.

Handlers and coordinators use Partition, never Log, and wait for commits through it. It has two kinds of waiters:
followers wait for the log's end to advance; consumers, acks=all and coordinators wait for the high watermark. If this
is the only replica, both advance in the same call.

Source: kafka.cluster.Partition.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from operator import itemgetter
from typing import Final, TypeAlias

from broker.disks.work import DiskWork
from broker.replica.replica import Replica
from broker.replica.traffic import TopicTraffic
from broker.replica.truncation import Truncation
from broker.replica.waiter import Waiter
from coordinator.cluster.topics import names
from coordinator.cluster.topics.topic import NO_LEADER
from coordinator.replication.isr import NO_OTHERS, Isr, IsrRules
from coordinator.replication.roles import NO_EPOCH, UNASSIGNED, FollowerFetch, Following, LeaderMoved, Leading, Role
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition, Uuid
from storage.appending.append import AppendRules, Settled
from storage.config import LogConfig
from storage.log import Appended, Log
from storage.producers.entry import Origin, Verification

HIGH_WATERMARK: Final = -1
"""DeleteRecords' offset for "all committed records"."""

CommitCallback: TypeAlias = "Callable[[KafkaError | None], None]"
"""Called with None once an offset is committed, or with an error if this leader will not commit it."""


def ignore_role(_: Partition) -> None:
    """Ignores a change of role."""


def propose_nothing(partition: Partition, isr: Isr) -> None:
    """Proposes nothing, because there is no controller to answer."""


Propose: TypeAlias = "Callable[[Partition, Isr], None]"


class Partition(Replica):
    """This broker's replica of one partition, in its role."""

    __slots__ = (
        "append_waiters",
        "commits",
        "gone",
        "held",
        "is_alone",
        "is_internal",
        "leader_epoch",
        "on_role",
        "propose",
        "role",
        "rules",
        "tenure",
        "traffic",
        "truncation",
        "waiters",
    )

    def __init__(self, name: TopicPartition, topic_id: Uuid, log: Log, rules: IsrRules = NO_OTHERS) -> None:
        super().__init__(name, topic_id, log)
        self.rules = rules
        self.is_internal = names.is_internal(name.topic)
        """True if only brokers write to its topic."""
        self.role: Role = UNASSIGNED
        """The current role; only `become` changes it."""
        self.leader_epoch = NO_EPOCH
        self.is_alone = False
        """True if this broker leads and has the only replica: an append commits."""
        self.on_role: Callable[[Partition], None] = ignore_role
        """Called after each change of the role."""
        self.propose: Propose = propose_nothing
        """Asks the controller for an ISR that the leader proposes."""
        self.gone = ErrorCode.NONE
        """The error of requests for a retired replica; NONE while it is in use."""
        self.tenure = 0
        """Number of times that another broker took over, or the replica was retired. Appends of an earlier tenure may
        be lost.
        """
        self.traffic = TopicTraffic()
        """The counts of its topic, once it is one of the broker's replicas."""
        self.truncation: Truncation | None = None
        """The truncation of the log in a thread; None if there is none."""
        self.waiters: dict[Waiter, None] = {}
        """Requests that wait for commits, in order of arrival. A dict and not a set, so that the order is the same in
        every run.
        """
        self.append_waiters: dict[Waiter, None] = {}
        """Requests that wait for appends."""
        self.held: dict[Waiter, None] = {}
        """Followers' fetches that have records but are held back to batch more, until a request waits for commits."""
        self.commits: list[tuple[int, CommitCallback]] = []
        """Callbacks for offsets to be committed, by offset."""

    def __repr__(self) -> str:
        return f"Partition({self.name}, {self.role})"

    # The role

    @property
    def leads(self) -> bool:
        """True while this broker leads the partition."""
        return isinstance(self.role, Leading)

    def become(self, role: Role, now_ms: int) -> None:
        """Changes the role, unless a newer role has been assigned. A new leader's epoch begins at its log's end.
        Requests for commits keep waiting if the leader stays the same, and fail if it changes. While a thread
        truncates the log, the role is deferred.
        """
        if self.truncation is not None:
            self.truncation.defer(role, now_ms)
            return
        before = self.role
        if role.partition_epoch < before.partition_epoch:
            return
        self.role, self.leader_epoch = role, role.epoch
        self.is_alone = isinstance(role, Leading) and role.is_alone
        if isinstance(role, Leading):
            if not isinstance(before, Leading) or before.epoch != role.epoch:
                self.log.assign_leader_epoch(role.epoch, role.epoch_start)
            self.advance(now_ms)
        else:
            self._fail_commits(self.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            self.tenure += 1
        self.on_role(self)
        self.wake_all()

    def retire(self, code: ErrorCode) -> None:
        """Retires a replica that this broker no longer has: all waiting requests fail with the error `code`, which
        names no leader.
        """
        self.role, self.is_alone = Following(partition_epoch=self.role.partition_epoch), False
        self.gone = code
        self._fail_commits(KafkaError(code))
        self.tenure += 1
        self.wake_all()

    def check_leads(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Raises the LeaderMoved of `check_epoch`, or LeaderMoved with NOT_LEADER_OR_FOLLOWER if this broker doesn't
        lead."""
        self.check_epoch(current_leader_epoch)
        if not isinstance(self.role, Leading):
            raise self.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Raises LeaderMoved, which names the leader (KIP-951): FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH if the
        client's epoch is behind or ahead (KIP-320)."""
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            is_behind = current_leader_epoch < self.leader_epoch
            raise self.moved(ErrorCode.FENCED_LEADER_EPOCH if is_behind else ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def is_behind(self) -> bool:
        """True while a new leader doesn't know if all its records of earlier epochs are committed."""
        role = self.role
        return isinstance(role, Leading) and role.epoch_start > self.log.high_watermark

    def moved(self, code: ErrorCode) -> LeaderMoved:
        """Returns the error, with the newest leader that this replica knows."""
        deferred = None if self.truncation is None else self.truncation.next_role
        role = self.role if deferred is None else deferred[0]
        leader = "has no leader" if role.leader_id == NO_LEADER else f"is led by broker {role.leader_id}"
        return LeaderMoved(code, f"{self.name} {leader} in epoch {role.epoch}", role.leader_id, role.epoch)

    # Its log

    async def truncate(self, offset: int, leader_epoch: int, disk_work: DiskWork, *, fully: bool = False) -> bool:
        """Truncates the log to the offset in a thread, because the leader of that epoch doesn't have the later records;
        if `fully`, removes all records. Returns True if the log becomes shorter.

        Raises FENCED_LEADER_EPOCH if this replica doesn't follow in that epoch, and LogDirFailure, after which the
        replica is retired.
        """
        while self.truncation is not None:
            await self.truncation.over()
        role, log = self.role, self.log
        if self.gone or isinstance(role, Leading) or role.epoch != leader_epoch:
            raise self.moved(ErrorCode.FENCED_LEADER_EPOCH)
        end = log.log_end_offset
        truncation = self.truncation = Truncation()
        log.begin_truncation()
        disk_work.truncate(self.name, offset, self._truncated, fully)
        await truncation.over()
        return log.log_end_offset < end

    def _truncated(self, error: BaseException | None) -> None:
        """Applies the deferred role after the thread has ended; retires the replica if the thread failed."""
        truncation, self.truncation = self.truncation, None
        assert truncation is not None
        self.log.end_truncation()
        if error is not None:
            self.retire(ErrorCode.KAFKA_STORAGE_ERROR)
        elif truncation.next_role is not None and not self.gone:
            role, now_ms = truncation.next_role
            if isinstance(role, Leading):
                role.epoch_start = min(role.epoch_start, self.log.log_end_offset)
            self.become(role, now_ms)
        truncation.end(error)

    def configure(self, config: LogConfig) -> None:
        """Replaces the topic's options."""
        self.log.config = config

    def move_to(self, log: Log) -> None:
        """Continues with a copy of the log in another directory."""
        self.log = log
        self.wake_all()

    def check_in_sync(self) -> None:
        """Raises NOT_ENOUGH_REPLICAS if fewer replicas are in sync than min.insync.replicas requires, and
        NOT_LEADER_OR_FOLLOWER if this broker doesn't lead."""
        role = self.role
        if not isinstance(role, Leading):
            raise self.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        needed = role.min_isr(self.log.config.min_insync_replicas)
        if len(role.isr.committed) < needed:
            in_sync = sorted(role.isr.committed)
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.name}: the in-sync replicas are {in_sync}, but {needed} are required",
            )

    # Appends

    @property
    def append_rules(self) -> AppendRules:
        """The topic's current rules for batches."""
        return self.log.rules

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        guard: Verification | None = None,
        for_all: bool = False,
        settled: Settled | None = None,
    ) -> Appended:
        """Appends and wakes the waiters. Raises KafkaError or TooLong with nothing written.

        `guard` is the result of `start_verification` for a transaction's first records. `for_all` requires
        min.insync.replicas. `settled` has the validated records if an earlier call raised TooLong.
        """
        if not self.is_alone:
            if for_all or origin is not Origin.CLIENT:
                self.check_in_sync()
            else:
                self.check_leads()
        log = self.log
        appended = log.append(
            records, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin, guard=guard, settled=settled
        )
        self.traffic.appended(appended.base_offset, appended.last_offset, len(records))
        if not self.is_alone:
            self._appended(len(records), now_ms)
            return appended
        log.update_high_watermark(log.log_end_offset)
        if self.waiters:
            held_back = log.first_unstable_offset is not None
            for waiter in tuple(self.waiters):
                if not (held_back and waiter.committed_only):
                    waiter.appended(len(records))
        return appended

    def _appended(self, size_bytes: int, now_ms: int) -> None:
        for waiter in tuple(self.append_waiters):
            waiter.appended(size_bytes)
        self.advance(now_ms)

    def end_transaction(self, marker: memoryview, transaction_version: int, now_ms: int) -> int:
        """Appends the marker that commits or aborts a producer's transaction, and returns the offset after it.

        Raises KafkaError with nothing written: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED,
        NOT_ENOUGH_REPLICAS, NOT_LEADER_OR_FOLLOWER.

        Wakes all waiters, because they may wait for the transaction's records, which were held back until now.
        """
        self.check_in_sync()
        log = self.log
        log.append(
            marker,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=Origin.COORDINATOR,
            transaction_version=transaction_version,
        )
        if self.is_alone:
            log.update_high_watermark(log.log_end_offset)
            self.wake_all()
        else:
            self._appended(len(marker), now_ms)
        return log.log_end_offset

    def delete_records(self, offset: int) -> int:
        """Moves the log start offset up to `offset`, -1 for the high watermark, and returns the log start offset.
        Raises KafkaError: POLICY_VIOLATION on a topic that is only compacted, OFFSET_OUT_OF_RANGE beyond the high
        watermark."""
        config = self.log.config
        if self.is_internal:
            message = f"{self.name.topic} is internal: its records cannot be deleted"
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        if config.compact and not config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{self.name.topic} is compacted: its records cannot be deleted"
            )
        if offset < HIGH_WATERMARK:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.name}: {offset} is not an offset")
        self.log.advance_log_start(self.high_watermark if offset == HIGH_WATERMARK else offset)
        self.wake_all()
        return self.log.log_start_offset

    def advance_log_start(self, offset: int) -> None:
        """Deletes the records below the offset. Raises OFFSET_OUT_OF_RANGE beyond the high watermark."""
        self.log.advance_log_start(offset)

    # Followers

    def check_follower(self, broker_id: int, current_leader_epoch: int) -> Leading:
        """Returns the leader's role, for a request of a broker that has another replica. Raises NOT_LEADER_OR_FOLLOWER
        if this broker doesn't lead, and the error of `Leading.unknown_follower`."""
        role = self.role
        if not isinstance(role, Leading):
            raise self.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if broker_id not in role.followers:
            raise self.moved(role.unknown_follower(current_leader_epoch))
        return role

    def fetched(self, fetch: FollowerFetch, current_leader_epoch: int = NO_EPOCH) -> None:
        """Records a follower's progress, by which the follower may join the ISR and records may be committed. Raises
        the errors of `check_follower`, and NOT_LEADER_OR_FOLLOWER if the broker has registered again since (KIP-903).
        """
        role = self.check_follower(fetch.broker_id, current_leader_epoch)
        if self.rules.is_stale(fetch.broker_id, fetch.broker_epoch):
            raise self.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        before, log = role.followers[fetch.broker_id], self.log
        proposed = role.fetched(fetch, log.log_end_offset, log.high_watermark, self.rules)
        if proposed is not None:
            self.propose(self, proposed)
        if fetch.offset != before.log_end_offset or log.high_watermark < log.log_end_offset:
            self.advance(fetch.received_ms)  # another follower that blocked the commit may be fenced or late by now
        if fetch.log_start_offset != before.log_start_offset:
            for waiter in tuple(self.append_waiters):  # a deletion may be complete now
                waiter.wake()

    def shrink_isr(self, now_ms: int) -> None:
        """Proposes an ISR without the replicas that have been behind for replica.lag.time.max.ms.

        Commits records that waited only for a follower that was about to join and has been behind for as long: if its
        broker is dead, no fetch arrives that would commit them.
        """
        role = self.role
        if isinstance(role, Leading) and not role.is_alone:
            proposed = role.late(self.log_end_offset, self.rules, now_ms)
            if proposed is not None:
                self.propose(self, proposed)
            elif self.high_watermark < self.log_end_offset:
                self.advance(now_ms)

    # Commits

    def advance(self, now_ms: int) -> None:
        """Advances the high watermark to the end of the committed records, never back."""
        role, log = self.role, self.log
        assert isinstance(role, Leading)
        end = log.log_end_offset
        if not role.is_alone:
            end = role.committed_offset(end, log.config.min_insync_replicas, self.rules, now_ms)
        if end > log.high_watermark:
            log.update_high_watermark(end)
            self._settle_commits()
            for waiter in tuple(self.waiters):  # followers read up to the log's end already
                waiter.wake()

    def when_committed(self, offset: int, then: CommitCallback) -> None:
        """Calls `then` once every record below the offset is committed, or at once if they are. `then` gets a
        KafkaError if this broker no longer leads, because the records may be committed or lost.
        """
        if offset <= self.log.high_watermark:
            then(None)
        else:
            insort(self.commits, (offset, then), key=itemgetter(0))
            self._release_held()

    def _settle_commits(self) -> None:
        high_watermark = self.log.high_watermark
        while self.commits and self.commits[0][0] <= high_watermark:
            self.commits.pop(0)[1](None)

    def _fail_commits(self, error: KafkaError) -> None:
        commits, self.commits = self.commits, []
        for _, then in commits:
            then(error)

    def commit_error(self, offset: int, tenure: int) -> ErrorCode | None:
        """Returns the error code of an append with acks=all that was made in this tenure and ends at the offset: NONE
        once it is committed, None until that is known.

        NOT_ENOUGH_REPLICAS_AFTER_APPEND if it is committed, but now fewer replicas are in sync than min.insync.replicas
        requires.
        """
        role = self.role
        if self.gone:
            return self.gone
        if not isinstance(role, Leading) or tenure != self.tenure:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if offset > self.log.high_watermark:
            return None
        is_enough = len(role.isr.maximal) >= role.min_isr(self.log.config.min_insync_replicas)
        return ErrorCode.NONE if is_enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    @property
    def is_awaited(self) -> bool:
        """True if a request or coordinator waits for commits."""
        return bool(self.waiters or self.commits)

    def add_waiter(self, waiter: Waiter) -> None:
        """Lets commits wake a waiter from now on."""
        self.waiters[waiter] = None
        self._release_held()

    def _release_held(self) -> None:
        for waiter in tuple(self.held):
            waiter.wake()

    def wake_all(self) -> None:
        """Wakes all waiters after a change other than an append."""
        for waiter in (*self.waiters, *self.append_waiters):
            waiter.wake()
