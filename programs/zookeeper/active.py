"""The active broker's work: it publishes the image's topics as znodes, and carries out the inputs of old tools.

Source: kafka.controller.KafkaController of Kafka 1.1, its ZooKeeper handlers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from coordinator.cluster.changes import (
    ConfigChanged,
    Delta,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicDeleted,
)
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.image import Image
from programs.zookeeper import znodes
from programs.zookeeper.broker_configs import BrokerConfigs, entity_name, shown_brokers
from programs.zookeeper.carrying_out import Hands, log_refusals
from programs.zookeeper.client import Znode, ZookeeperClient, ZookeeperRefused
from programs.zookeeper.config_changes import Changes, ConfigChanges
from programs.zookeeper.election import Term
from programs.zookeeper.inputs import ConfigInput, DeletedByTool, PreferredElection, progress
from programs.zookeeper.operations import Delete, Operation, Write
from programs.zookeeper.plan import TopicView, topic_view
from programs.zookeeper.registry import Registry, apply_all
from programs.zookeeper.session import ZookeeperSession
from programs.zookeeper.znodes import BadZnode

WATCHED: Final = frozenset(
    {znodes.TOPICS, znodes.CONFIG_CHANGES, znodes.DELETE_TOPICS, znodes.REASSIGN_PARTITIONS, znodes.PREFERRED_ELECTION}
)


class Active:
    """The work of the active broker, and its state between turns."""

    def __init__(self, image: Image, hands: Hands) -> None:
        self._image = image
        self._hands = hands
        self._registry = Registry()
        self._brokers = BrokerConfigs()
        self._changes = ConfigChanges()
        self._loaded = False
        self._dirty: set[str] = set()
        """Topics that have changed in the image."""
        self._dirty_brokers: set[str] = set()
        """Brokers whose configs have changed in the image."""
        self._events: set[str] = set()
        """Watched znodes that have changed."""
        self._deleting: set[str] = set()
        """Topics in /admin/delete_topics."""
        self._moving: Mapping[tuple[str, int], Sequence[int]] = {}
        """The unfinished part of /admin/reassign_partitions."""
        self._moving_version = -1
        """The version of /admin/reassign_partitions that was read."""

    def forget(self) -> None:
        """Discards the state, so that the next turn reads everything."""
        self._loaded = False
        self._dirty.clear()
        self._dirty_brokers.clear()
        self._events.clear()

    def note(self, delta: Delta) -> bool:
        """Records the changes of the image. Returns True if a turn is needed; never before the first turn of a term,
        which reads everything anyway."""
        if not self._loaded:
            return False
        before = len(self._dirty) + len(self._dirty_brokers)
        for change in delta.changes:
            if isinstance(change, (TopicCreated, TopicDeleted, PartitionCreated, PartitionChanged)):
                self._dirty.add(change.topic.name)
            elif isinstance(change, ConfigChanged) and change.resource.type is ResourceType.TOPIC:
                self._dirty.add(change.resource.name)
            elif isinstance(change, ConfigChanged) and change.resource.type is ResourceType.BROKER:
                self._dirty_brokers.add(entity_name(change.resource))
        return len(self._dirty) + len(self._dirty_brokers) > before

    def znode_changed(self, path: str) -> None:
        """Records that a watched znode has changed."""
        if self._loaded:
            self._events.add(path)

    async def turn(self, session: ZookeeperSession, term: Term, now_ms: int) -> bool:
        """Publishes the image, and carries out the inputs of tools. Returns True if there is more to do. Raises
        Conflict, ZookeeperUnavailable, KafkaError, after which the caller must call `forget`."""
        events, self._events = self._events, set()
        dirty, self._dirty = self._dirty, set()
        brokers, self._dirty_brokers = self._dirty_brokers, set()
        if not self._loaded:
            self._loaded = True
            events = set(WATCHED)
            await session.call(self._load)
            dirty |= {topic.name for topic in self._image.topics()} | self._registry.names()
            brokers |= self._configured_brokers() | self._brokers.names()
        else:
            dirty |= await session.call(partial(self._look_again, events=events))
        changes = Changes({}, [], [])
        if znodes.CONFIG_CHANGES in events:
            changes = await session.call(partial(self._changes.read, now_ms=now_ms))
        published = self._registry.published()
        tools = sorted(name for name in dirty if self._image.topic(name) is None and name not in published)
        views = {name: topic_view(self._image, name) for name in dirty.difference(tools)}
        await session.call(partial(self._registry.publish, term=term, views=views, pending=changes.names("topics")))
        configs, unread = shown_brokers(self._image, brokers), changes.names("brokers")
        await session.call(partial(self._brokers.publish, term=term, configs=configs, pending=unread))
        await self._create(session, term, tools)
        await self._add_partitions(session, term, views.values())
        await self._configure(session, term, changes)
        answers = [*changes.old, *await self._administer(session, events)]
        if answers:
            await session.call(partial(apply_all, term=term, operations=answers))
        return bool(self._dirty or self._dirty_brokers)

    def _configured_brokers(self) -> set[str]:
        resources = (resource for resource in self._image.configured() if resource.type is ResourceType.BROKER)
        return {entity_name(resource) for resource in resources}

    def _load(self, client: ZookeeperClient) -> None:
        client.make_paths(znodes.PERSISTENT)
        self._registry.load(client)
        self._brokers.load(client)

    def _look_again(self, client: ZookeeperClient, events: Collection[str]) -> set[str]:
        prefix = f"{znodes.TOPICS}/"
        topics = [path.removeprefix(prefix) for path in events if path.startswith(prefix)]
        if not topics and znodes.TOPICS not in events:
            return set()
        return self._registry.look_again(client, topics, names=znodes.TOPICS in events)

    async def _create(self, session: ZookeeperSession, term: Term, names: Iterable[str]) -> None:
        """Creates the topics whose znodes tools have made."""
        for name in names:
            try:
                topic = self._registry.new_topic(name)
                refused = topic is not None and await self._hands.create(topic)
            except BadZnode as error:
                log_refusals([(znodes.topic_path(name), str(error))])
                refused = True
            if refused:
                await session.call(partial(self._registry.restore, term=term, name=name, view=None))

    async def _add_partitions(self, session: ZookeeperSession, term: Term, views: Iterable[TopicView | None]) -> None:
        """Adds the partitions that tools have added to topics' znodes."""
        for view in views:
            more = None if view is None else self._registry.more_partitions(view)
            if more is not None and await self._hands.add_partitions(more):
                now = topic_view(self._image, more.name)
                await session.call(partial(self._registry.restore, term=term, name=more.name, view=now))

    async def _configure(self, session: ZookeeperSession, term: Term, changes: Changes) -> None:
        """Sets the configs that tools have written, and writes the resulting configs back."""
        log_refusals([(bad.path, bad.reason) for bad in changes.bad])
        gone = [Delete(bad.path) for bad in changes.bad if bad.remove]
        await session.call(partial(apply_all, term=term, operations=gone))
        for change in changes.unread.values():
            configs = await self._hands.configure(change)
            await session.call(partial(self._write_again, term=term, change=change, configs=configs))

    def _write_again(
        self, client: ZookeeperClient, term: Term, change: ConfigInput, configs: Mapping[str, str]
    ) -> None:
        entity, data = change.entity, znodes.config_json(configs)
        try:
            client.apply([term.fence, Write(entity.path, data, change.version)])
        except ZookeeperRefused as error:
            log_refusals([(entity.path, f"the resulting configs cannot be written: {error}")])
            return
        if entity.kind == "topics":
            self._registry.reread(client, entity.name)
        else:
            self._brokers.wrote(entity.name, data, change.version + 1)

    async def _administer(self, session: ZookeeperSession, events: Collection[str]) -> list[Operation]:
        """Carries out the inputs in /admin. Returns the operations that answer them."""
        answers: list[Operation] = []
        if znodes.DELETE_TOPICS in events:
            self._deleting = set(await session.call(lambda client: client.children(znodes.DELETE_TOPICS, watch=True)))
        if znodes.PREFERRED_ELECTION in events:
            answers += await self._elect(await session.call(partial(_read, path=znodes.PREFERRED_ELECTION)))
        if znodes.REASSIGN_PARTITIONS in events:
            answers += self._begin_moves(await session.call(partial(_read, path=znodes.REASSIGN_PARTITIONS)))
        answers += await self._delete()
        answers += await self._move()
        return answers

    async def _delete(self) -> list[Operation]:
        """Deletes topics. Their znodes in /admin are deleted after all their other znodes."""
        answers: list[Operation] = []
        for name in sorted(self._deleting):
            if self._image.topic(name) is not None and not await self._hands.delete(DeletedByTool(name)):
                continue  # the image changes first, then the published znodes
            if self._loaded and name not in self._dirty:
                self._deleting.discard(name)
                answers.append(Delete(znodes.deletion_path(name)))
        return answers

    async def _elect(self, node: Znode | None) -> list[Operation]:
        if node is None:
            return []
        try:
            await self._hands.elect(PreferredElection(znodes.election_of(node.data)))
        except BadZnode as error:
            log_refusals([(znodes.PREFERRED_ELECTION, str(error))])
        return [Delete(znodes.PREFERRED_ELECTION, node.version)]

    def _begin_moves(self, node: Znode | None) -> list[Operation]:
        self._moving, self._moving_version = {}, -1
        if node is None:
            return []
        self._moving_version = node.version
        try:
            self._moving = znodes.reassignment_of(node.data)
        except BadZnode as error:
            log_refusals([(znodes.REASSIGN_PARTITIONS, str(error))])
            return [Delete(znodes.REASSIGN_PARTITIONS, node.version)]
        return [] if self._moving else [Delete(znodes.REASSIGN_PARTITIONS, node.version)]

    async def _move(self) -> list[Operation]:
        """Moves replicas. Completed moves are removed from /admin/reassign_partitions after the topics' znodes are
        updated."""
        if not self._moving or self._dirty or not self._loaded:
            return []
        now = progress(self._image, self._moving)
        refused = await self._hands.reassign(now)
        remaining = {partition: replicas for partition, replicas in now.remaining.items() if partition not in refused}
        if remaining.keys() == self._moving.keys():
            return []
        self._moving = remaining
        if not remaining:
            return [Delete(znodes.REASSIGN_PARTITIONS, self._moving_version)]
        return [Write(znodes.REASSIGN_PARTITIONS, znodes.reassignment_json(remaining), self._moving_version)]


def _read(client: ZookeeperClient, path: str) -> Znode | None:
    return client.get_input(path)
