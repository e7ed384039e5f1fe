"""The target znodes of the image, and the operations that turn the existing znodes into them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from coordinator.cluster.image import Image
from coordinator.cluster.topics.topic import PartitionRegistration
from programs.zookeeper import znodes
from programs.zookeeper.operations import Create, Delete, Operation, Write
from programs.zookeeper.znodes import BadZnode


class TopicView(NamedTuple):
    """An immutable snapshot of a topic in the image."""

    name: str
    partitions: Mapping[int, PartitionRegistration]
    configs: Mapping[str, str]


class Known(NamedTuple):
    """A znode that exists."""

    data: bytes
    version: int
    is_ephemeral: bool = False
    """True if a session owns it. It is deleted with the session and can't have children."""


def topic_view(image: Image, name: str) -> TopicView | None:
    """Returns a snapshot of the topic; None if it doesn't exist."""
    topic = image.topic(name)
    return None if topic is None else TopicView(name, topic.partitions.copy(), dict(image.topic_configs(name)))


def target_znodes(view: TopicView | None, controller_epoch: int) -> dict[str, bytes]:
    """Returns the znodes of a topic in the order of their creation; none for a deleted topic.

    The configs come before the topic, as in kafka.admin.AdminUtils, so that a client that sees the topic sees its
    configs."""
    if view is None:
        return {}
    name = view.name
    paths = {
        znodes.topic_config_path(name): znodes.config_json(view.configs),
        znodes.topic_path(name): znodes.topic_json(
            {index: partition.replicas for index, partition in view.partitions.items()}
        ),
        znodes.partitions_path(name): b"",
    }
    for index, partition in sorted(view.partitions.items()):
        paths[znodes.partition_path(name, index)] = b""
        paths[znodes.state_path(name, index)] = znodes.state_json(partition, controller_epoch)
    return paths


def differences(
    registered: Mapping[str, Known], want: Mapping[str, bytes], keep: Collection[str] = ()
) -> Iterator[Operation]:
    """Yields the operations that turn the registered znodes into the target znodes. The data of znodes in `keep` is
    unchanged; only an ephemeral znode is replaced by a persistent one."""
    for path in sorted(registered.keys() - want.keys(), key=by_depth, reverse=True):
        yield Delete(path)
    for path, data in want.items():
        znode = registered.get(path)
        if znode is None:
            yield Create(path, data)
        elif znode.is_ephemeral and not any(other.startswith(f"{path}/") for other in registered):
            yield Delete(path)
            yield Create(path, znode.data if path in keep else data)
        elif path not in keep and not is_same(path, znode.data, data):
            yield Write(path, data, znode.version)


def by_depth(path: str) -> tuple[bool, int, str]:
    """Returns the sort key of creation; in reverse order the configs of topics are deleted last."""
    return not path.startswith(znodes.TOPIC_CONFIGS), path.count("/"), path


def is_same(path: str, present: bytes, target: bytes) -> bool:
    """True if two znodes have the same content. The controller epoch of a partition is ignored: it is that of the last
    change."""
    if present == target:
        return True
    room, depth = path.split("/")[1], path.count("/")
    read = READERS.get((room, depth))
    if read is None:
        return True  # it has no content
    try:
        return read(present) == read(target)
    except BadZnode:
        return False


def _state(data: bytes) -> object:
    value = znodes.parsed(data)
    return value.get("leader"), value.get("leader_epoch"), value.get("isr")


READERS: Mapping[tuple[str, int], Callable[[bytes], object]] = {
    ("config", 3): znodes.configs_of,
    ("brokers", 3): znodes.assignment_of,
    ("brokers", 6): _state,
}
"""The readers of a znode's content, by the path's first component and depth."""


def added_partitions(data: bytes, view: TopicView, made: Collection[int]) -> dict[int, list[int]]:
    """Returns the partitions that a tool has added to a topic's znode: they are not in the image, and no broker has
    created their znodes (`made`). Raises BadZnode."""
    return {
        index: replicas
        for index, replicas in znodes.assignment_of(data).items()
        if index not in view.partitions and index not in made
    }


def with_prefix(paths: Iterable[str], prefix: str) -> list[int]:
    """Returns the partitions that have znodes among the paths."""
    names = {path.removeprefix(prefix).split("/")[0] for path in paths if path.startswith(prefix)}
    return sorted({int(name) for name in names if znodes.is_number(name)})
