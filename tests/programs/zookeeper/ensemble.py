"""ZooKeeper as a dictionary, with the methods of the real client: versions, zxids, owners, watches."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from programs.zookeeper.client import (
    Conflict,
    Znode,
    ZookeeperClient,
    ZookeeperRefused,
    ZookeeperUnavailable,
)
from programs.zookeeper.operations import CheckVersion, Create, Delete, Operation, Write

T = TypeVar("T")


class Ensemble:
    """The znodes, and their watches."""

    def __init__(self) -> None:
        self.nodes: dict[str, Znode] = {"/": Znode(b"", 0, 0, 0, 0, 0)}
        self.watches: dict[str, list[Callable[[str | None], None]]] = {}
        self.now_ms = 0
        self.unreadable: set[str] = set()
        self.unwritable: set[str] = set()
        self._zxids = itertools.count(1)
        self._sequence = itertools.count()

    def json(self, path: str) -> Any:
        return json.loads(self.nodes[path].data)

    def put(self, path: str, value: object, owner: int = 0) -> None:
        """Writes a znode, and creates its parents, as a tool does; `owner` is the session that owns it."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        above = ""
        for part in path.split("/")[1:-1]:
            above = f"{above}/{part}"
            if above not in self.nodes:
                self.change([Create(above)])
        create = Create(path, data, ephemeral=owner != 0)
        self.change([Write(path, data) if path in self.nodes else create], owner)

    def change(self, operations: Sequence[Operation], owner: int = 0) -> None:
        """Carries out a multi."""
        before, zxid, touched = dict(self.nodes), next(self._zxids), []
        try:
            for operation in operations:
                touched += self._one(operation, zxid, owner)
        except (Conflict, ZookeeperUnavailable):
            self.nodes = before
            raise
        for path in touched:
            for tell in self.watches.pop(path, []):
                tell(path)

    def _one(self, operation: Operation, zxid: int, owner: int) -> list[str]:
        path = operation.path
        parent = path.rpartition("/")[0] or "/"
        if isinstance(operation, Create):
            path = f"{path}{next(self._sequence):010}" if operation.sequence else path
            if path in self.nodes or parent not in self.nodes:
                raise Conflict(path)
            if self.nodes[parent].owner:
                raise ZookeeperUnavailable(f"{parent} is ephemeral")
            its_owner = owner if operation.ephemeral else 0
            self.nodes[path] = Znode(operation.data, 0, zxid, zxid, self.now_ms, its_owner)
            return [path, f"{parent}:children"]
        node = self.nodes.get(path)
        if node is None or getattr(operation, "version", -1) not in (-1, node.version):
            raise Conflict(path)
        if isinstance(operation, Delete):
            if self.below(path):
                raise Conflict(path)
            del self.nodes[path]
            return [path, f"{path}:children", f"{parent}:children"]
        if isinstance(operation, Write):
            self.nodes[path] = node._replace(data=operation.data, version=node.version + 1, modified_zxid=zxid)
            return [path]
        assert isinstance(operation, CheckVersion)
        return []

    def remove(self, path: str) -> None:
        """Deletes a znode, if it exists and has no children."""
        if path in self.nodes and not self.below(path):
            self.change([Delete(path)])

    def below(self, path: str) -> list[str]:
        prefix = "/" if path == "/" else f"{path}/"
        return [one[len(prefix) :] for one in self.nodes if one.startswith(prefix) and "/" not in one[len(prefix) :]]

    def expire(self, session_id: int) -> None:
        """Ends a session, as ZooKeeper does after a timeout."""
        for path in [path for path, node in self.nodes.items() if node.owner == session_id]:
            self.change([Delete(path)])


class MemoryClient(ZookeeperClient):
    """A client of the dictionary."""

    def __init__(self, ensemble: Ensemble, session_id: int, on_event: Callable[[str | None], None]) -> None:
        self.ensemble = ensemble
        self._session_id = session_id
        self._tell = on_event
        self.is_down = False

    def start(self) -> None:
        pass

    def stop(self) -> None:
        self.ensemble.expire(self._session_id)

    @property
    def connected(self) -> bool:
        return not self.is_down

    @property
    def session_id(self) -> int | None:
        return self._session_id

    def renew(self) -> None:
        """Replaces the expired session by a new one."""
        self.ensemble.expire(self._session_id)
        self._session_id += 1000
        self._tell(None)

    def _check(self) -> None:
        if self.is_down:
            raise ZookeeperUnavailable("down")

    def _watch(self, key: str) -> None:
        watchers = self.ensemble.watches.setdefault(key, [])
        if self._event not in watchers:
            watchers.append(self._event)

    def _event(self, key: str | None) -> None:
        self._tell(None if key is None else key.removesuffix(":children"))

    def get_all(
        self, paths: Iterable[str], *, watch: bool = False, refused: set[str] | None = None
    ) -> dict[str, Znode | None]:
        self._check()
        readable = self._readable(paths, refused)
        for path in readable if watch else ():
            if path in self.ensemble.nodes:
                self._watch(path)
        return {path: self.ensemble.nodes.get(path) for path in readable}

    def _watch_for(self, path: str) -> Znode | None:
        self._check()
        self._watch(path)
        node = self.ensemble.nodes.get(path)
        return None if node is None else node._replace(data=b"")

    def _readable(self, paths: Iterable[str], refused: set[str] | None) -> list[str]:
        unreadable, readable = self.ensemble.unreadable, list[str]()
        for path in paths:
            if path not in unreadable:
                readable.append(path)
            elif refused is None:
                raise ZookeeperRefused(path)
            else:
                refused.add(path)
        return readable

    def children_of(
        self, paths: Iterable[str], *, watch: bool = False, refused: set[str] | None = None
    ) -> dict[str, list[str]]:
        self._check()
        readable = self._readable(paths, refused)
        for path in readable if watch else ():
            self._watch(f"{path}:children")
        return {path: self.ensemble.below(path) for path in readable}

    def apply(self, operations: Sequence[Operation]) -> None:
        self._check()
        if forbidden := {one.path for one in operations} & self.ensemble.unwritable:
            raise ZookeeperRefused(str(forbidden))
        self.ensemble.change(operations, self._session_id)

    def next_number(self, path: str) -> int:
        self._check()
        if path not in self.ensemble.nodes:
            self.ensemble.put(path, b"")
        self.ensemble.put(path, b"")
        return self.ensemble.nodes[path].version

    def put_all(self, data: Mapping[str, bytes]) -> dict[str, OSError | None]:
        self._check()
        for path, one in data.items():
            self.ensemble.put(path, one)
        return dict.fromkeys(data)


class MemorySession:
    """A session that carries out its work immediately."""

    def __init__(self, settings: object, on_event: Callable[[str | None], None], ensemble: Ensemble) -> None:
        loop = asyncio.get_running_loop()

        def told(path: str | None) -> None:
            loop.call_soon(on_event, path)

        self.client = MemoryClient(ensemble, next(_SESSIONS), told)

    async def open(self) -> None:
        pass

    @property
    def connected(self) -> bool:
        return self.client.connected

    async def call(self, work: Callable[[ZookeeperClient], T]) -> T:
        await asyncio.sleep(0)
        return work(self.client)

    call_beside = call

    async def close(self) -> None:
        self.client.stop()


_SESSIONS = itertools.count(1)
