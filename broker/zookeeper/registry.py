"""The registry of topics in ZooKeeper, as the active broker knows and keeps it. Runs in the session's thread."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from broker.zookeeper import znodes
from broker.zookeeper.client import Conflict, ZookeeperClient
from broker.zookeeper.election import Term
from broker.zookeeper.inputs import MorePartitions, NewTopic
from broker.zookeeper.operations import Create, Operation, Write, multis
from broker.zookeeper.plan import Known, TopicView, added_partitions, differences, target_znodes, with_prefix
from broker.zookeeper.znodes import BadZnode


class Registry:
    """The znodes of topics that are there, as they were read or written last."""

    def __init__(self) -> None:
        self._registered: dict[str, dict[str, Known]] = {}

    def load(self, client: ZookeeperClient) -> None:
        """Reads everything anew, and watches for topics that come and change."""
        self._registered = self._read(client, client.children(znodes.TOPICS, watch=True))

    def look_again(self, client: ZookeeperClient, topics: Iterable[str], *, names: bool) -> set[str]:
        """Reads topics whose znodes have changed, and where `names` have, the list of them. Returns the topics whose
        znodes are not as they were."""
        changed = {topic for topic in topics if topic in self._registered}
        if names:
            children = set(client.children(znodes.TOPICS, watch=True))
            changed |= children ^ self._registered.keys()
        for topic in changed:
            self._registered.pop(topic, None)
        there = self._read(client, sorted(changed))
        self._registered |= {topic: paths for topic, paths in there.items() if znodes.topic_path(topic) in paths}
        return changed

    @staticmethod
    def _read(client: ZookeeperClient, topics: Sequence[str]) -> dict[str, dict[str, Known]]:
        registered: dict[str, dict[str, Known]] = {topic: {} for topic in topics}
        children = client.children_of(map(znodes.partitions_path, topics))
        own = client.get_all(map(znodes.topic_path, topics), watch=True)
        rest = [path for topic in topics for path in _paths(topic, children[znodes.partitions_path(topic)])]
        for path, node in (own | client.get_all(rest)).items():
            if node is not None:
                topic = path.split("/")[3]
                registered[topic][path] = Known(node.data, node.version)
        return registered

    def names(self) -> set[str]:
        """Returns the topics that have a znode."""
        return set(self._registered)

    def published(self) -> set[str]:
        """Returns the topics of which a broker has made the znodes of partitions, so that no tool's are among them."""
        return {topic for topic, paths in self._registered.items() if znodes.partitions_path(topic) in paths}

    def publish(
        self, client: ZookeeperClient, term: Term, views: Mapping[str, TopicView | None], pending: Collection[str]
    ) -> None:
        """Makes the znodes of topics as they are in the image; `pending` are topics whose configs a tool has changed.
        Raises Conflict: then it has to be loaded anew."""
        for name in [name for name, view in views.items() if view is None and name in self._registered]:
            self._registered[name] = _tree(client, name)
        operations = [one for name, view in views.items() for one in self._operations(name, view, term, pending)]
        for some in multis(operations):
            client.apply([term.fence, *some])
        made = [
            znodes.topic_path(name)
            for name, view in views.items()
            if view is not None and not self._registered.get(name)
        ]
        for name, view in views.items():
            self._note(name, view, term, pending)
        self._watch(client, made)

    def _watch(self, client: ZookeeperClient, topics: Sequence[str]) -> None:
        """Watches topics' new znodes: tools add partitions there."""
        for path, node in client.get_all(topics, watch=True).items():
            if node is not None:
                self._registered[path.split("/")[3]][path] = Known(node.data, node.version)

    def _operations(
        self, name: str, view: TopicView | None, term: Term, pending: Collection[str]
    ) -> Iterator[Operation]:
        registered = self._registered.get(name, {})
        for operation in differences(registered, target_znodes(view, term.epoch), self._inputs_at(name, view, pending)):
            if isinstance(operation, Write) and operation.path == znodes.topic_config_path(name):
                # before what it tells of: a notification that is newer than the configs is a tool's
                change = znodes.change_json("topics", name)
                yield Create(f"{znodes.CONFIG_CHANGES}/config_change_", change, sequence=True)
            yield operation

    def _inputs_at(self, name: str, view: TopicView | None, pending: Collection[str]) -> set[str]:
        """Returns the znodes that hold a tool's input."""
        input_paths = {znodes.topic_config_path(name)} if name in pending else set()
        if view is not None and self._added(view):
            input_paths.add(znodes.topic_path(name))
        return input_paths

    def _note(self, name: str, view: TopicView | None, term: Term, pending: Collection[str]) -> None:
        """Notes what was written."""
        if view is None:
            self._registered.pop(name, None)
            return
        registered, input_paths = self._registered.setdefault(name, {}), self._inputs_at(name, view, pending)
        after: dict[str, Known] = {}
        for operation in differences(registered, want := target_znodes(view, term.epoch), input_paths):
            if isinstance(operation, Create):
                after[operation.path] = Known(operation.data, 0)
            elif isinstance(operation, Write):
                after[operation.path] = Known(operation.data, operation.version + 1)
        self._registered[name] = {path: one for path, one in registered.items() if path in want} | after

    def _added(self, view: TopicView) -> dict[int, list[int]]:
        registered = self._registered.get(view.name, {})
        there = registered.get(znodes.topic_path(view.name))
        if there is None:
            return {}
        made = with_prefix(registered, f"{znodes.partitions_path(view.name)}/")
        try:
            return added_partitions(there.data, view, made)
        except BadZnode:
            return {}

    def new_topic(self, name: str) -> NewTopic | None:
        """Returns the topic of a tool's, None where a broker has made its partitions or it is gone. Raises BadZnode."""
        registered = self._registered.get(name, {})
        there = registered.get(znodes.topic_path(name))
        if there is None or znodes.partitions_path(name) in registered:
            return None
        config = registered.get(znodes.topic_config_path(name))
        return NewTopic(
            name, znodes.assignment_of(there.data), {} if config is None else znodes.configs_of(config.data)
        )

    def more_partitions(self, view: TopicView) -> MorePartitions | None:
        """Returns the partitions that a tool has added to a topic."""
        added = self._added(view)
        return MorePartitions(view.name, len(view.partitions), added) if added else None

    def restore(self, client: ZookeeperClient, term: Term, name: str, view: TopicView | None) -> None:
        """Makes a topic's znodes as the image has them, whatever a tool has written: it was refused."""
        registered = self._registered.get(name, {}) if view is not None else _tree(client, name)
        try:
            for some in multis(differences(registered, target_znodes(view, term.epoch))):
                client.apply([term.fence, *some])
        finally:
            self.look_again(client, [name], names=False)

    def reread(self, client: ZookeeperClient, name: str) -> None:
        """Reads a topic's znodes anew, after they were written by another way."""
        self.look_again(client, [name], names=False)


def _paths(topic: str, partitions: Iterable[str]) -> list[str]:
    """Returns the paths of a topic beside its own znode."""
    paths = [znodes.topic_config_path(topic), znodes.partitions_path(topic)]
    for partition in partitions:
        path = f"{znodes.partitions_path(topic)}/{partition}"
        paths += [path, f"{path}/state"]
    return paths


def _tree(client: ZookeeperClient, topic: str) -> dict[str, Known]:
    """Returns all that is to go with a topic: whatever else somebody has put below its znode, too."""
    level = [znodes.topic_path(topic), znodes.topic_config_path(topic)]
    registered: dict[str, Known] = {}
    while level:
        registered |= {
            path: Known(one.data, one.version) for path, one in client.get_all(level).items() if one is not None
        }
        level = [f"{path}/{child}" for path, children in client.children_of(level).items() for child in children]
    return registered


def apply_all(client: ZookeeperClient, term: Term, operations: Iterable[Operation]) -> None:
    """Carries out operations that do not depend on each other; what is done already is no failure."""
    for operation in operations:
        with suppress(Conflict):
            client.apply([term.fence, operation])
