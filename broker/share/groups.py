"""ShareGroups: the share partitions and share sessions of this broker.

A share partition is loaded when a member first fetches from it. It is unloaded when this broker no longer leads the
partition, or when the last member of its group has closed its connection.

Source: SharePartitionManager (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.request.context import ClientConnection
from broker.shards.environment import Environment
from broker.shards.groups import GroupCoordinator
from broker.shards.shares import ShareCoordinator
from broker.shards.translations import seen_by_share_member
from broker.share.dead_letters import DeadLetters
from broker.share.sessions import PartitionId, SessionKey, ShareSession, ShareSessions
from broker.workers import Workers
from coordinator.cluster.changes import ConfigChanged, Delta, FeatureChanged, PartitionChanged
from coordinator.engine.engine import Engine
from coordinator.group.config import GroupConfig
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy
from protocol.tuples import new_tuple

if TYPE_CHECKING:
    from broker.share import hosted, initializing, persister
    from broker.share.hosted import Hosted
    from broker.share.persister import Persister
    from coordinator.group.share.initialization import Initialize
    from coordinator.share_partition.run import StateRecord
else:  # with the first share partition
    hosted = lazy("broker.share.hosted")
    initializing = lazy("broker.share.initializing")
    persister = lazy("broker.share.persister")


PERSISTERS: Final = ("DefaultStatePersister", "NoOpStatePersister")
"""Kafka's persisters, by the last part of group.share.persister.class.name."""

logger = get_logger(__name__)


class ShareGroups:
    """The share partitions and share sessions of this broker, as handlers use them."""

    def __init__(
        self, environment: Environment, coordinator: GroupCoordinator, shares: ShareCoordinator, workers: Workers
    ) -> None:
        """`coordinator` has the groups' members and options, `shares` the share group state; `workers` read records."""
        self.environment = environment
        self.coordinator = coordinator
        self._workers = workers
        self._shares = shares
        self._persister_class = persister_class(environment.config.group_share_persister_class_name)
        self.dead_letters = DeadLetters(environment)
        self.sessions = ShareSessions()
        self._engine: Engine[StateRecord] = Engine(
            environment.clock,
            lambda key, error: None,  # whoever loads a share partition handles the error
            as_answer=seen_by_share_member,
            on_fault=self._fault,
        )
        self._hosted: dict[ShareKey, Hosted] = {}
        self._by_group: dict[str, dict[ShareKey, None]] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._initializing: dict[str, asyncio.Task[object]] = {}

    def start(self) -> None:
        """Follows the image and the broker's options from now on."""
        self.environment.loader.subscribe(self._changed)
        self.environment.live_config.subscribe(self._refresh)

    def stop(self) -> None:
        """Unloads all share partitions."""
        for hosted in list(self._hosted.values()):
            self.give_up(hosted)

    @cached_property
    def persister(self) -> Persister:
        """The store of share group state."""
        if self._persister_class == PERSISTERS[0]:
            return persister.CoordinatorPersister(self._shares)
        return persister.NoOpPersister()

    def config(self, group_id: str) -> GroupConfig:
        """Returns a group's effective options: those that its share partitions apply, if any is loaded."""
        for key in self._by_group.get(group_id, ()):
            return self._hosted[key].config
        return self.coordinator.group_config(group_id)

    # Share partitions.

    def partition(self, named: PartitionId) -> Partition:
        """Returns the partition, if this broker leads it. Raises UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
        NOT_LEADER_OR_FOLLOWER."""
        replicas = self.environment.replicas
        return replicas.leader(replicas.name_of(named.topic_id), named.partition)

    def check_topic(self, named: PartitionId) -> None:
        """Raises UNKNOWN_TOPIC_ID."""
        if self.environment.replicas.name_of(named.topic_id) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)

    def error_of(self, named: PartitionId) -> KafkaError | None:
        """Returns the error of a partition that this broker doesn't lead; None for a partition that it leads."""
        try:
            self.partition(named)
        except KafkaError as error:
            return error.detached()
        return None

    def find(self, group_id: str, named: PartitionId) -> Hosted | None:
        """Returns the share partition; None if it isn't loaded."""
        return self._hosted.get(new_tuple(ShareKey, (group_id, *named)))

    def at_work(self) -> list[tuple[ShareKey, Hosted]]:
        """Returns the loaded share partitions."""
        return [(key, hosted) for key, hosted in self._hosted.items() if hosted.machine.is_active]

    def loaded(self, group_id: str, named: PartitionId) -> Hosted:
        """Returns a loaded share partition. Raises UNKNOWN_TOPIC_OR_PARTITION."""
        hosted = self.find(group_id, named)
        if hosted is None or not hosted.machine.is_active:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return hosted

    def hosted(self, group_id: str, named: PartitionId) -> Hosted:
        """Returns the share partition, which may still be loading. Raises the errors of `partition`."""
        key = new_tuple(ShareKey, (group_id, *named))
        share_partition = self._hosted.get(key)
        if share_partition is not None:
            return share_partition
        config: Callable[[], GroupConfig] = lambda: self.coordinator.group_config(group_id)  # noqa: E731 (typed)
        share_partition = hosted.Hosted(
            key,
            self.partition(named),
            config,
            self._engine,
            self.persister,
            self.dead_letters,
            self.environment.clock,
            self._workers,
            self.give_up,
        )
        self._hosted[key] = share_partition
        self._by_group.setdefault(group_id, {})[key] = None
        self._spawn(share_partition.load())
        return share_partition

    def _spawn(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        task: asyncio.Task[object] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def initialize_later(self, initialization: Initialize) -> None:
        """Initializes the state of share partitions that are read for the first time, in the background."""
        group_id = initialization.group_id
        work = initializing.initialize(self.persister, self.coordinator, initialization)
        task = self._initializing[group_id] = self._spawn(work)

        def forget(_: object) -> None:
            if self._initializing.get(group_id) is task:
                del self._initializing[group_id]

        task.add_done_callback(forget)

    async def initialized(self, group_id: str, timeout_s: float) -> bool:
        """Waits up to `timeout_s` while the group's state is being initialized. True once it is; False if it takes
        longer, or no state is being initialized."""
        task = self._initializing.get(group_id)
        if task is None:
            return False
        done, _ = await asyncio.wait((task,), timeout=timeout_s)
        return bool(done)

    def give_up(self, hosted: Hosted) -> None:
        """Unloads a fenced share partition; the next request loads it again."""
        key = hosted.key
        if self._hosted.get(key) is hosted:
            del self._hosted[key]
            keys = self._by_group[key.group_id]
            keys.pop(key, None)
            if not keys:
                del self._by_group[key.group_id]
        hosted.stop()

    def _fault(self, key: Hashable, error: Exception) -> None:
        """Unloads a share partition that failed by a bug: its state may be half changed."""
        logger.error("share partition failed", partition=str(key), exc_info=error)
        hosted = self._hosted.get(cast(ShareKey, key))
        if hosted is not None:
            self.give_up(hosted)

    def forget_group(self, group_id: str) -> None:
        """Unloads all share partitions of a group; the next request loads them again."""
        for key in tuple(self._by_group.get(group_id, ())):
            self.give_up(self._hosted[key])

    def _changed(self, delta: Delta) -> None:
        """Unloads the share partitions of deleted topics and of partitions with a new leader epoch."""
        if not self._hosted:
            return
        deleted = set(delta.deleted_topics.values())
        led_anew = {
            (change.topic.topic_id, change.partition_index)
            for change in delta.changes
            if isinstance(change, PartitionChanged) and change.before.leader_epoch != change.after.leader_epoch
        }
        if deleted or led_anew:
            for key, hosted in list(self._hosted.items()):
                if key.topic_id in deleted or (key.topic_id, key.partition) in led_anew:
                    self.give_up(hosted)
        if delta.has(FeatureChanged):
            for hosted in self._hosted.values():
                hosted.features_changed()
        if delta.has(ConfigChanged):
            self._refresh()

    def _refresh(self) -> None:
        """Applies the groups' options to the share partitions if they have changed."""
        for hosted in self._hosted.values():
            hosted.refresh()

    # Share sessions.

    def is_full(self, key: SessionKey) -> bool:
        """True if another session would exceed the limit. A member's new session replaces its old one, so the old one
        doesn't count."""
        others = len(self.sessions) - (self.sessions.get(key) is not None)
        return others >= self._session_limit

    @property
    def _session_limit(self) -> int:
        return self.environment.config.group_share_max_share_sessions

    def open_session(
        self, key: SessionKey, partitions: dict[PartitionId, bool], connection: ClientConnection
    ) -> ShareSession:
        """Opens a session. Raises SHARE_SESSION_LIMIT_REACHED."""
        session = self.sessions.open(key, partitions, connection, self._session_limit)
        if self._connection_closed not in connection.on_close:
            connection.on_close.append(self._connection_closed)
        return session

    def close_session(self, key: SessionKey) -> None:
        """Ends a session, and releases its member's acquired records."""
        session = self.sessions.remove(key)
        if session is None:
            return
        for share_key in tuple(self._by_group.get(key.group_id, ())):  # few, though a session may have many partitions
            hosted = self._hosted[share_key]
            if PartitionId(share_key.topic_id, share_key.partition) in session.partitions:
                hosted.release(key.member_id)

    def _connection_closed(self, connection: ClientConnection) -> None:
        for session in self.sessions.of_connection(connection):
            self.close_session(session.key)
        for group_id in self.sessions.forget(connection):  # also if the members had ended their sessions before
            self.forget_group(group_id)


def persister_class(name: str) -> str:
    """Returns the last part of a persister's class name. Raises INVALID_CONFIG for a class that isn't one of Kafka's
    two."""
    _, _, last = name.rpartition(".")
    if last not in PERSISTERS:
        names = ", ".join(PERSISTERS)
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"group.share.persister.class.name {name}: it must be one of {names}"
        )
    return last
