"""Reads the znodes of a consumer group, and writes its offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from cli.exits import FAILED, UNREACHABLE
from commands.errors import CommandError, misuse
from commands.zookeeper.consumers import OldMember, member
from protocol.lazy import lazy
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from kazoo import exceptions
    from kazoo.client import KazooClient
else:  # the package is not installed everywhere
    exceptions = lazy("kazoo.exceptions")

CONNECT_S: Final = 10
"""Time within which an ensemble must answer."""

BROKER_IDS: Final = "/brokers/ids"
MAX_OFFSET: Final = (1 << 63) - 1
MAX_DIGITS, OFFSET_DIGITS = 10, 19
"""Maximum number of digits of a partition index, and of an offset."""

T = TypeVar("T")


class OldGroup(NamedTuple):
    """The state of a group in ZooKeeper."""

    members: list[OldMember]
    owners: dict[TopicPartition, str]
    offsets: dict[TopicPartition, int]
    brokers: list[str]
    """The ids of registered brokers."""


@contextmanager
def zookeeper(connect: str) -> Iterator[KazooClient]:
    """Connects to an ensemble. Raises CommandError."""
    try:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
    except ModuleNotFoundError as error:
        raise misuse(f"this needs {error.name}: pip install 'odradek[zookeeper]'") from None
    try:
        client = KazooClient(connect, timeout=CONNECT_S)
    except ValueError as error:
        raise misuse(
            f"--zookeeper {connect}: expected HOST:PORT,HOST:PORT…, optionally with a path ({error})"
        ) from None
    try:
        client.start(timeout=CONNECT_S)
        yield client
    except (KazooException, KazooTimeoutError) as error:
        raise CommandError(f"--zookeeper {connect}: {error or type(error).__name__}", UNREACHABLE) from None
    finally:
        client.stop()
        client.close()


def group_path(group: str) -> str:
    """Returns the path of a group. Raises CommandError if the name is not a single path component."""
    if not group or "/" in group or group in (".", ".."):
        raise misuse(f"{group!r} cannot be the name of a group in ZooKeeper")
    return f"/consumers/{group}"


def read_group(client: KazooClient, group: str) -> OldGroup:
    """Returns the group; missing znodes are left out. Raises CommandError if a znode has invalid content."""
    path = group_path(group)
    members = [
        _read(f"{path}/ids/{consumer_id}", data, partial(member, consumer_id))
        for consumer_id in sorted(_children(client, f"{path}/ids"))
        if (data := _data(client, f"{path}/ids/{consumer_id}")) is not None
    ]
    owners = dict(_by_partition(client, f"{path}/owners", bytes.decode))
    return OldGroup(
        members, owners, dict(_by_partition(client, f"{path}/offsets", _offset)), _children(client, BROKER_IDS)
    )


def write_offsets(client: KazooClient, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Writes each offset to its znode."""
    for place, offset in offsets.items():
        path = f"{group_path(group)}/offsets/{place.topic}/{place.partition}"
        client.ensure_path(path)
        client.set(path, b"%d" % offset)


def _by_partition(client: KazooClient, path: str, parse: Callable[[bytes], T]) -> Iterator[tuple[TopicPartition, T]]:
    for topic in sorted(_children(client, path)):
        for index in _children(client, f"{path}/{topic}"):
            data = _data(client, f"{path}/{topic}/{index}")
            if data and index.isascii() and index.isdecimal() and len(index) <= MAX_DIGITS:
                yield TopicPartition(topic, int(index)), _read(f"{path}/{topic}/{index}", data, parse)


def _offset(data: bytes) -> int:
    text = data.decode().strip()
    if not text.isascii() or not text.isdecimal() or len(text) > OFFSET_DIGITS or int(text) > MAX_OFFSET:
        raise ValueError(f"{text:.40} is not an offset")
    return int(text)


def _read(path: str, data: bytes, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(data)
    except ValueError as error:
        raise CommandError(f"{path}: {error}", FAILED) from None


def _children(client: KazooClient, path: str) -> list[str]:
    try:
        return list(client.get_children(path))
    except exceptions.NoNodeError:
        return []


def _data(client: KazooClient, path: str) -> bytes | None:
    try:
        return client.get(path)[0] or b""
    except exceptions.NoNodeError:
        return None
