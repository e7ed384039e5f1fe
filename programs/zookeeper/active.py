"""The active broker's work: it keeps the registry of topics as the image is, and does what old tools ask for by znodes.

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
    {
        znodes.TOPICS,
        znodes.CONFIG_CHANGES,
        znodes.DELETE_TOPICS,
        znodes.REASSIGN_PARTITIONS,
        znodes.PREFERRED_ELECTION,
    }
)


class Active:
    """The work of the active broker, and the state that it remembers between turns."""

    def __init__(self, image: Image, hands: Hands) -> None:
        self._image = image
        self._hands = hands
        self._registry = Registry()
        self._brokers = BrokerConfigs()
        self._changes = ConfigChanges()
        self._loaded = False
        self._dirty: set[str] = set()
        """Topics that changed in the image."""
        self._dirty_brokers: set[str] = set()
        """Brokers whose configs did."""
        self._events: set[str] = set()
        """Znodes that changed."""
        self._deleting: set[str] = set()
        """Topics in /admin/delete_topics."""
        self._moving: Mapping[tuple[str, int], Sequence[int]] = {}
        """The rest of /admin/reassign_partitions."""
        self._moving_version = -1
        """Of that znode, when it was read."""

    def forget(self) -> None:
        """Takes nothing for known: the next turn reads everything."""
        self._loaded = False
        self._dirty.clear()
        self._dirty_brokers.clear()
        self._events.clear()

    def note(self, delta: Delta) -> bool:
        """Notes what changed in the image; returns whether there is anything to do. There is not while this broker is
        not the active one, which begins by reading everything."""
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
        """Notes a watched znode that changed."""
        if self._loaded:
            self._events.add(path)

    async def turn(self, session: ZookeeperSession, term: Term, now_ms: int) -> bool:
        """Makes znodes as the image is, and carries out what tools ask for; returns whether there is more to do.

        Raises Conflict, ZookeeperUnavailable, KafkaError: then it has to be forgotten what was known."""
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
        resources = (one for one in self._image.configured() if one.type is ResourceType.BROKER)
        return {entity_name(one) for one in resources}

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
        """Adds the partitions that tools have written into topics' znodes."""
        for view in views:
            more = None if view is None else self._registry.more_partitions(view)
            if more is not None and await self._hands.add_partitions(more):
                now = topic_view(self._image, more.name)
                await session.call(partial(self._registry.restore, term=term, name=more.name, view=now))

    async def _configure(self, session: ZookeeperSession, term: Term, changes: Changes) -> None:
        """Sets the configs that tools have written, and writes them again as they are by now."""
        log_refusals([(one.path, one.reason) for one in changes.bad])
        gone = [Delete(one.path) for one in changes.bad if one.remove]
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
            log_refusals([(entity.path, f"its configs cannot be answered: {error}")])
            return
        if entity.kind == "topics":
            self._registry.reread(client, entity.name)
        else:
            self._brokers.wrote(entity.name, data, change.version + 1)

    async def _administer(self, session: ZookeeperSession, events: Collection[str]) -> list[Operation]:
        """Does what /admin asks for; returns the operations that answer it."""
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
        """Deletes topics; their znodes in /admin go when all others have."""
        answers: list[Operation] = []
        for name in sorted(self._deleting):
            if self._image.topic(name) is not None and not await self._hands.delete(DeletedByTool(name)):
                continue  # the image changes, and what is published after it
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
        """Moves replicas; what is done is no longer in /admin/reassign_partitions, once the topics' znodes say so."""
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
