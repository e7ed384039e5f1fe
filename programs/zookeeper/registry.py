"""The registry of topics in ZooKeeper, which the active broker publishes. Runs in the session's thread."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from broker.logging import get_logger
from programs.zookeeper import znodes
from programs.zookeeper.client import Conflict, Znode, ZookeeperClient, ZookeeperRefused
from programs.zookeeper.election import Term
from programs.zookeeper.inputs import MorePartitions, NewTopic
from programs.zookeeper.operations import Create, Operation, Write, multis
from programs.zookeeper.plan import Known, TopicView, added_partitions, differences, target_znodes, with_prefix
from programs.zookeeper.znodes import BadZnode

Target = Mapping[str, bytes]
"""The target znodes of a topic."""

logger = get_logger(__name__)


class Registry:
    """The znodes of topics, as last read or written."""

    def __init__(self) -> None:
        self._registered: dict[str, dict[str, Known]] = {}
        self._closed: set[str] = set()
        """Topics with an unreadable or unwritable znode. They are left unchanged until everything is read again."""
        self._is_careful = False
        """True after ZooKeeper has rejected a multi: the next one is applied topic by topic, to find the rejected
        topic."""

    def load(self, client: ZookeeperClient) -> None:
        """Reads everything again, and watches for new and changed topics."""
        self._closed = set()
        self._registered = self._read(client, client.children(znodes.TOPICS, watch=True))

    def look_again(self, client: ZookeeperClient, topics: Iterable[str], *, names: bool) -> set[str]:
        """Reads topics whose znodes have changed, and with `names` the list of topics. Returns the topics that were
        read again."""
        changed = {topic for topic in topics if topic in self._registered}
        if names:
            children = set(client.children(znodes.TOPICS, watch=True))
            changed |= (children ^ self._registered.keys()) - self._closed
        for topic in changed:
            self._registered.pop(topic, None)
        read = self._read(client, sorted(changed))
        self._registered |= {topic: paths for topic, paths in read.items() if znodes.topic_path(topic) in paths}
        return changed

    def _read(self, client: ZookeeperClient, topics: Sequence[str]) -> dict[str, dict[str, Known]]:
        refused: set[str] = set()
        children = client.children_of(map(znodes.partitions_path, topics), refused=refused)
        nodes = client.get_all(map(znodes.topic_path, topics), watch=True, refused=refused)
        rest = [path for topic in topics for path in _paths(topic, children.get(znodes.partitions_path(topic), ()))]
        nodes |= client.get_all(rest, refused=refused)
        self._close({_topic_of(path) for path in refused})
        registered: dict[str, dict[str, Known]] = {topic: {} for topic in topics if topic not in self._closed}
        for path, node in nodes.items():
            if node is not None and _topic_of(path) in registered:
                registered[_topic_of(path)][path] = _as_registered(node)
        return registered

    def _close(self, topics: set[str]) -> None:
        """Leaves out topics whose znodes can't be accessed: one such topic would stop the publication of all others."""
        if topics:
            names, count = ", ".join(sorted(topics)[:3]), len(topics)
            logger.warning(
                "znodes of topics are left unchanged: ZooKeeper rejects access to them", topics=names, count=count
            )
        self._closed |= topics
        for topic in topics:
            self._registered.pop(topic, None)

    def names(self) -> set[str]:
        """Returns the topics that have a znode."""
        return set(self._registered)

    def published(self) -> set[str]:
        """Returns the topics whose partition znodes a broker has created; the other topics are a tool's."""
        return {topic for topic, paths in self._registered.items() if znodes.partitions_path(topic) in paths}

    def publish(
        self, client: ZookeeperClient, term: Term, views: Mapping[str, TopicView | None], pending: Collection[str]
    ) -> None:
        """Publishes topics of the image. `pending` has the topics whose configs a tool has changed. Raises Conflict,
        and at the first rejection ZookeeperRefused, after which the registry must be loaded again."""
        targets = {name: target_znodes(view, term.epoch) for name, view in views.items() if self._concerns(name, view)}
        for name, target in targets.items():
            self._look_below(client, name, target)
        targets = {name: target for name, target in targets.items() if name not in self._closed}
        inputs = {name: self._inputs_at(name, views[name], pending) for name in targets}
        operations = {name: list(self._operations(name, target, inputs[name])) for name, target in targets.items()}
        made = [znodes.topic_path(name) for name, view in views.items() if view and not self._registered.get(name)]
        self._apply(client, term, operations)
        for name in targets.keys() - self._closed:
            self._note(name, targets[name], inputs[name])
        self._watch(client, [path for path in made if _topic_of(path) in self._registered])

    def _concerns(self, name: str, view: TopicView | None) -> bool:
        return name not in self._closed and (view is not None or name in self._registered)

    def _look_below(self, client: ZookeeperClient, name: str, target: Target) -> None:
        """Reads all znodes below the znodes to be deleted, because a znode with children can't be deleted."""
        registered = self._registered.get(name, {})
        try:
            if not target:
                self._registered[name] = _tree(client, [znodes.topic_path(name), znodes.topic_config_path(name)])
            elif leftovers := registered.keys() - target.keys():
                self._registered[name] = registered | _tree(client, sorted(leftovers))
        except ZookeeperRefused:
            self._close({name})

    def _apply(self, client: ZookeeperClient, term: Term, operations: Mapping[str, Sequence[Operation]]) -> None:
        if not self._is_careful:
            try:
                _apply_some(client, term, [operation for listed in operations.values() for operation in listed])
            except ZookeeperRefused:
                self._is_careful = True
                raise
            return
        refused: set[str] = set()
        for name, listed in operations.items():
            try:
                _apply_some(client, term, listed)
            except ZookeeperRefused:
                refused.add(name)
        self._close(refused)
        self._is_careful = False

    def _watch(self, client: ZookeeperClient, paths: Sequence[str]) -> None:
        """Watches the new znodes of topics, because tools add partitions there."""
        for path, node in client.get_all(paths, watch=True).items():
            if node is not None:
                self._registered[_topic_of(path)][path] = _as_registered(node)

    def _operations(self, name: str, target: Target, inputs: Collection[str]) -> Iterator[Operation]:
        for operation in differences(self._registered.get(name, {}), target, inputs):
            if isinstance(operation, Write) and operation.path == znodes.topic_config_path(name):
                # before the configs themselves: a notification that is newer than the configs is a tool's
                change = znodes.change_json("topics", name)
                yield Create(f"{znodes.CONFIG_CHANGES}/config_change_", change, sequence=True)
            yield operation

    def _inputs_at(self, name: str, view: TopicView | None, pending: Collection[str]) -> set[str]:
        """Returns the znodes that have a tool's input."""
        input_paths = {znodes.topic_config_path(name)} if name in pending else set()
        if view is not None and self._added(view):
            input_paths.add(znodes.topic_path(name))
        return input_paths

    def _note(self, name: str, target: Target, inputs: Collection[str]) -> None:
        """Records what was written."""
        if not target:
            self._registered.pop(name, None)
            return
        registered = self._registered.setdefault(name, {})
        after: dict[str, Known] = {}
        for operation in differences(registered, target, inputs):
            if isinstance(operation, Create):
                after[operation.path] = Known(operation.data, 0)
            elif isinstance(operation, Write):
                after[operation.path] = Known(operation.data, operation.version + 1)
        self._registered[name] = {path: node for path, node in registered.items() if path in target} | after

    def _added(self, view: TopicView) -> dict[int, list[int]]:
        registered = self._registered.get(view.name, {})
        znode = registered.get(znodes.topic_path(view.name))
        if znode is None:
            return {}
        made = with_prefix(registered, f"{znodes.partitions_path(view.name)}/")
        try:
            return added_partitions(znode.data, view, made)
        except BadZnode:
            return {}

    def new_topic(self, name: str) -> NewTopic | None:
        """Returns a topic that a tool has created; None if a broker has created its partitions or it is gone. Raises
        BadZnode."""
        registered = self._registered.get(name, {})
        znode = registered.get(znodes.topic_path(name))
        if znode is None or znodes.partitions_path(name) in registered:
            return None
        if not znodes.is_short(name):
            raise BadZnode("has a name that is too long")
        config = registered.get(znodes.topic_config_path(name))
        return NewTopic(
            name, znodes.assignment_of(znode.data), {} if config is None else znodes.configs_of(config.data)
        )

    def more_partitions(self, view: TopicView) -> MorePartitions | None:
        """Returns the partitions that a tool has added to a topic."""
        added = self._added(view)
        return MorePartitions(view.name, len(view.partitions), added) if added else None

    def restore(self, client: ZookeeperClient, term: Term, name: str, view: TopicView | None) -> None:
        """Publishes a topic of the image over the tool's input, which was rejected."""
        target = target_znodes(view, term.epoch)
        self._look_below(client, name, target)
        if name in self._closed:
            return
        try:
            _apply_some(client, term, differences(self._registered.get(name, {}), target))
        except ZookeeperRefused:
            self._close({name})
        finally:
            self.look_again(client, [name], names=False)

    def reread(self, client: ZookeeperClient, name: str) -> None:
        """Reads a topic's znodes again, after a write that was made elsewhere."""
        self.look_again(client, [name], names=False)


def _as_registered(node: Znode) -> Known:
    return Known(node.data, node.version, node.owner != 0)


def _topic_of(path: str) -> str:
    """Returns the topic to which a znode below /brokers/topics or /config/topics belongs."""
    return path.split("/")[3]


def _paths(topic: str, partitions: Iterable[str]) -> list[str]:
    """Returns the paths of a topic except its own znode."""
    paths = [znodes.topic_config_path(topic), znodes.partitions_path(topic)]
    for partition in partitions:
        path = f"{znodes.partitions_path(topic)}/{partition}"
        paths += [path, f"{path}/state"]
    return paths


def _tree(client: ZookeeperClient, paths: Sequence[str]) -> dict[str, Known]:
    """Returns the znodes and all their descendants."""
    registered: dict[str, Known] = {}
    level = list(paths)
    while level:
        registered |= {path: _as_registered(node) for path, node in client.get_all(level).items() if node is not None}
        level = [f"{path}/{child}" for path, children in client.children_of(level).items() for child in children]
    return registered


def _apply_some(client: ZookeeperClient, term: Term, operations: Iterable[Operation]) -> None:
    for multi in multis(operations):
        client.apply([term.fence, *multi])


def apply_all(client: ZookeeperClient, term: Term, operations: Iterable[Operation]) -> None:
    """Carries out operations that don't depend on each other. An operation that is already done is not a failure, and a
    rejected operation doesn't prevent the others."""
    for operation in operations:
        try:
            client.apply([term.fence, operation])
        except Conflict:
            continue
        except ZookeeperRefused as error:
            logger.warning("the input of a tool cannot be answered", znode=operation.path, reason=str(error))
