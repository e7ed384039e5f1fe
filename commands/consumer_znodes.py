"""The znodes of a group of consumers: read, and written where its offsets move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from commands.errors import UNREACHABLE, CommandError, misuse
from commands.old_consumers import OldMember, member
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from kazoo.client import KazooClient

CONNECT_S: Final = 10
"""How long an ensemble may take to answer."""


class OldGroup(NamedTuple):
    """A group as ZooKeeper has it."""

    members: list[OldMember]
    owners: dict[TopicPartition, str]
    offsets: dict[TopicPartition, int]


@contextmanager
def zookeeper(connect: str) -> Iterator[KazooClient]:
    """Connects to an ensemble. Raises CommandError."""
    try:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
    except ModuleNotFoundError as error:
        raise misuse(f"this needs {error.name}: pip install 'odradek[zookeeper]'") from None
    client = KazooClient(connect, timeout=CONNECT_S)
    try:
        client.start(timeout=CONNECT_S)
        yield client
    except (KazooException, KazooTimeoutError) as error:
        raise CommandError(f"--zookeeper {connect}: {error or type(error).__name__}", UNREACHABLE) from None
    finally:
        client.stop()
        client.close()


def group_path(group: str) -> str:
    """Returns the path of a group. Raises CommandError for a name that is not one component of a path."""
    if not group or "/" in group or group in (".", ".."):
        raise misuse(f"{group!r} cannot be the name of a group in ZooKeeper")
    return f"/consumers/{group}"


def read_group(client: KazooClient, group: str) -> OldGroup:
    """Returns the group, without members, owners and offsets that are not there."""
    path = group_path(group)
    members = [
        member(consumer_id, data)
        for consumer_id in sorted(_children(client, f"{path}/ids"))
        if (data := _data(client, f"{path}/ids/{consumer_id}")) is not None
    ]
    owners = {one: data.decode() for one, data in _by_partition(client, f"{path}/owners")}
    offsets = {one: int(data) for one, data in _by_partition(client, f"{path}/offsets") if data.strip()}
    return OldGroup(members, owners, offsets)


def write_offsets(client: KazooClient, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Sets offsets, each in a znode of its own."""
    for one, offset in offsets.items():
        path = f"{group_path(group)}/offsets/{one.topic}/{one.partition}"
        client.ensure_path(path)
        client.set(path, b"%d" % offset)


def _by_partition(client: KazooClient, path: str) -> Iterator[tuple[TopicPartition, bytes]]:
    for topic in sorted(_children(client, path)):
        for index in _children(client, f"{path}/{topic}"):
            data = _data(client, f"{path}/{topic}/{index}")
            if data is not None and index.isdecimal():
                yield TopicPartition(topic, int(index)), data


def _children(client: KazooClient, path: str) -> list[str]:
    from kazoo.exceptions import NoNodeError

    try:
        return list(client.get_children(path))
    except NoNodeError:
        return []


def _data(client: KazooClient, path: str) -> bytes | None:
    from kazoo.exceptions import NoNodeError

    try:
        return client.get(path)[0] or b""
    except NoNodeError:
        return None
