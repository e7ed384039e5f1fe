"""A blocking ZooKeeper client for one thread, over kazoo, with a timeout for each wait."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from broker.config import BrokerConfig
from programs.zookeeper.operations import CheckVersion, Create, Delete, Operation, Write
from programs.zookeeper.znodes import CONSUMERS

RECONNECT_MS: Final = (100, 2_000)
"""The first and the longest pause between connection attempts. A server that is back is found within the latter."""

PIPELINED: Final = 500
"""Requests in flight at a time: enough to hide the round trip, few enough for ZooKeeper's own queue."""


warnings.filterwarnings("ignore", "No chroot path exists", module="kazoo")  # `start` makes it


class ZookeeperUnavailable(OSError):
    """ZooKeeper can't be reached, or didn't answer in time."""


class ZookeeperRefused(OSError):
    """ZooKeeper rejects permanently: authentication or authorization failed."""


class Conflict(Exception):
    """Znodes have changed since they were read, and must be read again."""


class Znode(NamedTuple):
    """A znode, as read."""

    data: bytes
    version: int
    created_zxid: int
    modified_zxid: int
    created_ms: int
    owner: int
    """The session whose end deletes an ephemeral znode; 0 for a persistent znode."""


class ZookeeperSettings(NamedTuple):
    """The settings of a session."""

    connect: str
    session_timeout_ms: int
    connection_timeout_ms: int
    digest: str | None = None
    restricted: bool = False
    """True if other clients may only read the broker's znodes (zookeeper.set.acl)."""

    @classmethod
    def of(cls, config: BrokerConfig) -> ZookeeperSettings:
        """Returns the settings of a broker's session."""
        timeout_ms, connection_timeout_ms = config.zookeeper_session_timeout_ms, config.zookeeper_connection_timeout_ms
        return cls(
            config.zookeeper_connect or "",
            timeout_ms,
            timeout_ms if connection_timeout_ms is None else connection_timeout_ms,
            config.odradek_zookeeper_digest,
            config.zookeeper_set_acl,
        )


CONFLICTS: Final = (NodeExistsError, NoNodeError, BadVersionError, NotEmptyError)
REFUSALS: Final = (AuthFailedError, NoAuthError, InvalidACLError)
AFTERMATH: Final = (RolledBackError, RuntimeInconsistency)
"""The results of a multi's other operations if one operation failed."""


@contextmanager
def translated() -> Iterator[None]:
    """Translates kazoo's errors to the errors of this module."""
    try:
        yield
    except CONFLICTS as error:
        raise Conflict(str(error) or type(error).__name__) from error
    except REFUSALS as error:
        raise ZookeeperRefused(f"ZooKeeper refuses: {type(error).__name__} {error}".rstrip()) from error
    except (KazooException, KazooTimeoutError) as error:
        raise ZookeeperUnavailable(f"ZooKeeper: {error or type(error).__name__}") from error


class ZookeeperClient:
    """A ZooKeeper client. Every method waits at most for the session timeout. Raises ZookeeperUnavailable and
    ZookeeperRefused."""

    def __init__(self, settings: ZookeeperSettings, on_event: Callable[[str | None], None]) -> None:
        """`on_event` is called in a kazoo thread: with the path of each watched znode that changes, and with None when
        the connection opens or closes."""
        self._settings = settings
        self._timeout_s = settings.session_timeout_ms / 1000
        self._on_event = on_event
        first, longest = (pause_ms / 1000 for pause_ms in RECONNECT_MS)
        self._kazoo = KazooClient(
            settings.connect,
            timeout=self._timeout_s,
            connection_retry=KazooRetry(max_tries=-1, delay=first, max_delay=longest),
            auth_data=[("digest", settings.digest)] if settings.digest else None,
            logger=_quiet(),
        )
        self._kazoo.add_listener(lambda _: on_event(None))

    def start(self) -> None:
        """Connects, and creates the chroot path."""
        servers = self._settings.connect
        try:
            self._kazoo.start(timeout=self._settings.connection_timeout_ms / 1000)
        except KazooTimeoutError:
            self.stop()
            waited = f"within {self._settings.connection_timeout_ms} ms"
            raise ZookeeperUnavailable(f"zookeeper.connect {servers}: no server answers {waited}") from None
        except Exception as error:
            self.stop()
            raise ZookeeperUnavailable(f"zookeeper.connect {servers}: {error}") from error
        try:
            self._make_root()
        except BaseException:
            self.stop()
            raise

    def _make_root(self) -> None:
        """Creates all components of the chroot path with the ACL of the znodes below it: a client that may delete there
        could delete /controller. kazoo creates only the last component."""
        root, self._kazoo.chroot = self._kazoo.chroot, ""
        try:
            with translated():
                self._kazoo.ensure_path(root or "/", acl=self._acl("/"))
        finally:
            self._kazoo.chroot = root

    def stop(self) -> None:
        """Closes the session, which deletes its ephemeral znodes."""
        self._kazoo.stop()
        self._kazoo.close()

    @property
    def connected(self) -> bool:
        return bool(self._kazoo.connected)

    @property
    def session_id(self) -> int | None:
        """The id of the session; None without a connection."""
        client_id = self._kazoo.client_id
        return None if client_id is None else client_id[0]

    def _changed(self, event: object) -> None:
        self._on_event(getattr(event, "path", None))

    def get(self, path: str, *, watch: bool = False) -> Znode | None:
        """Returns a znode; None if it is missing. A watch reports its next change, including its creation."""
        node = self.get_all([path], watch=watch)[path]
        return self._absent(path) if node is None and watch else node

    def get_input(self, path: str) -> Znode | None:
        """Returns a znode that any client may have written, like `get` with a watch; an unreadable znode is empty."""
        refused: set[str] = set()
        node = self.get_all([path], watch=True, refused=refused).get(path)
        if node is None:
            return self._watch_for(path) if refused else self._absent(path)
        return node

    def _absent(self, path: str) -> Znode | None:
        """Watches for the creation of a znode. Returns it if it was created meanwhile."""
        return None if self._watch_for(path) is None else self.get(path)

    def _watch_for(self, path: str) -> Znode | None:
        """Watches for any change of a znode, which needs no read permission. Returns it without its content."""
        with translated():
            stat = self._kazoo.exists_async(path, self._changed).get(timeout=self._timeout_s)
        return None if stat is None else _node(b"", stat)

    def get_all(
        self, paths: Iterable[str], *, watch: bool = False, refused: set[str] | None = None
    ) -> dict[str, Znode | None]:
        """Returns the znodes; None for a missing znode. A watch reports the next change of an existing znode.
        Unreadable paths are added to `refused`, if it is given, and left out of the result."""
        watcher = self._changed if watch else None
        nodes: dict[str, Znode | None] = {}
        with translated():
            for batch in _batches(paths):
                pending = [(path, self._kazoo.get_async(path, watcher)) for path in batch]
                for path, answer in pending:
                    try:
                        data, stat = answer.get(timeout=self._timeout_s)
                    except NoNodeError:
                        nodes[path] = None
                    except NoAuthError:
                        if refused is None:
                            raise
                        refused.add(path)
                    else:
                        nodes[path] = _node(data, stat)
        return nodes

    def children(self, path: str, *, watch: bool = False) -> list[str]:
        return self.children_of([path], watch=watch)[path]

    def children_of(
        self, paths: Iterable[str], *, watch: bool = False, refused: set[str] | None = None
    ) -> dict[str, list[str]]:
        """Returns the children of each path; none if it is missing. `refused` is as for `get_all`."""
        watcher = self._changed if watch else None
        children: dict[str, list[str]] = {}
        with translated():
            for batch in _batches(paths):
                pending = [(path, self._kazoo.get_children_async(path, watcher)) for path in batch]
                for path, answer in pending:
                    try:
                        children[path] = answer.get(timeout=self._timeout_s)
                    except NoNodeError:
                        children[path] = []
                    except NoAuthError:
                        if refused is None:
                            raise
                        refused.add(path)
        return children

    def apply(self, operations: Sequence[Operation]) -> None:
        """Carries out all operations, or none. Raises Conflict."""
        multi = self._kazoo.transaction()
        for operation in operations:
            match operation:
                case Create(path, data, ephemeral, sequence):
                    multi.create(path, data, self._acl(path), ephemeral, sequence)
                case Write(path, data, version):
                    multi.set_data(path, data, version)
                case Delete(path, version):
                    multi.delete(path, version)
                case CheckVersion(path, version):
                    multi.check(path, version)
        with translated():
            for result in multi.commit_async().get(timeout=self._timeout_s):
                if isinstance(result, Exception) and not isinstance(result, AFTERMATH):
                    raise result

    def make_paths(self, paths: Iterable[str]) -> None:
        """Creates missing znodes, with their parents."""
        ancestors = dict.fromkeys(above for path in paths for above in _upwards(path))
        absent = [path for path, node in self.get_all(ancestors).items() if node is None]
        for path in absent:  # shorter ones come first
            try:
                self.apply([Create(path)])
            except Conflict:
                continue  # another client was first

    def next_number(self, path: str) -> int:
        """Writes a znode, which is created if it is missing, and returns the number of its writes. No two callers get
        the same number."""
        try:
            return self._write_once_more(path)
        except Conflict:
            self.make_paths([path])
            return self._write_once_more(path)

    def _write_once_more(self, path: str) -> int:
        with translated():
            return int(self._kazoo.set_async(path, b"").get(timeout=self._timeout_s).version)

    def put_all(self, data: Mapping[str, bytes]) -> dict[str, OSError | None]:
        """Sets the data of persistent znodes, and creates missing ones. Returns the failure of each znode, None if it
        was written."""
        failures: dict[str, OSError | None] = {}
        for batch in _batches(data):
            pending = [(path, self._kazoo.set_async(path, data[path])) for path in batch]
            for path, answer in pending:
                try:
                    with translated():
                        answer.get(timeout=self._timeout_s)
                    failures[path] = None
                except Conflict:
                    failures[path] = self._put_new(path, data[path])
                except OSError as error:
                    failures[path] = error
        return failures

    def _put_new(self, path: str, data: bytes) -> OSError | None:
        """Creates a znode together with its data, because a reader expects an offset in it."""
        try:
            self.make_paths([path.rpartition("/")[0]])
            try:
                self.apply([Create(path, data)])
            except Conflict:  # another client was first
                self.apply([Write(path, data)])
        except Conflict as error:
            return ZookeeperUnavailable(f"{path} is repeatedly created and deleted: {error}")
        except OSError as error:
            return error
        return None

    def _acl(self, path: str) -> list[ACL]:
        """Returns the ACL for a path. Any consumer writes below /consumers itself."""
        if not self._settings.restricted or path == CONSUMERS or path.startswith(f"{CONSUMERS}/"):
            return list(OPEN_ACL_UNSAFE)
        return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]


def _node(data: bytes | None, stat: object) -> Znode:
    version, czxid, mzxid, ctime, owner = (
        int(getattr(stat, name)) for name in ("version", "czxid", "mzxid", "ctime", "ephemeralOwner")
    )
    return Znode(data or b"", version, czxid, mzxid, ctime, owner)


def _batches(paths: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(paths)
    while batch := list(islice(rest, PIPELINED)):
        yield batch


def _upwards(path: str) -> Iterator[str]:
    """Yields a path's ancestors from the top, and the path."""
    parts = path.split("/")[1:]
    return ("/" + "/".join(parts[: end + 1]) for end in range(len(parts)))


def _quiet() -> logging.Logger:
    """Returns a logger without output, because the broker logs kazoo's events in its own words."""
    quiet = logging.getLogger("kazoo.odradek")
    quiet.propagate = False
    if not quiet.handlers:
        quiet.addHandler(logging.NullHandler())
    return quiet
