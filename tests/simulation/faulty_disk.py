"""A disk in memory that loses, tears, reorders and damages data that was not made durable, fails, and fills up.

After a power loss, a file has its content at its last fsync, and any subset of the small pieces written since, some of
them damaged. A directory has its names at its last fsync, and the first few changes since, in order, as in a journaling
file system. The kill of a process loses nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from random import Random
from weakref import WeakSet

from storage.disk import Buffer, Disk, FileInfo, Space
from storage.open_files import OpenFiles

SECTOR = 64
"""Number of bytes that are written or lost as a whole: fewer than on any disk, so that small files are torn too."""

DAMAGE = 0.25
"""Share of the bytes of a damaged piece that are damaged. Few damaged bytes could all be in a batch's base offset,
which the CRC doesn't cover; in a compacted log, which has gaps, that can't be detected."""

BINARY = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".cleaned")


class Crash(BaseException):
    """The machine or the process ended in the middle of a call. Only the simulation may catch it."""


class Mapping(bytearray):
    """The content of a mapping, which exists as long as a view of it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


class File:
    """The content of a file as a process sees it, and as the device has it."""

    def __init__(self, now_ms: int, *, is_text: bool) -> None:
        self.is_text = is_text
        self.data = bytearray()
        self.durable = b""
        self.unsynced: list[tuple[int, bytes]] = []
        self.modified_ms = now_ms
        self.mappings: WeakSet[Mapping] = WeakSet()

    def write(self, content: bytes, offset: int) -> None:
        if len(self.data) < offset + len(content):
            self.data.extend(bytes(offset + len(content) - len(self.data)))
        self.data[offset : offset + len(content)] = content
        self.unsynced.append((offset, content))

    def cut(self, size: int) -> None:
        assert all(len(mapping) <= size for mapping in self.mappings), "a file was cut under a mapping: SIGBUS"
        old = len(self.data)
        del self.data[size:]
        if size > old:
            self.data.extend(bytes(size - old))
        else:  # the cut is in the journal at once, which is kind; what matters is what was written
            self.durable = self.durable[:size]
            self.unsynced = [(at, content[: size - at]) for at, content in self.unsynced if at < size]

    def sync(self) -> None:
        self.durable, self.unsynced = bytes(self.data), []

    def drop_unsynced(self) -> None:
        """Simulates a failed fsync: the system still shows the bytes, and believes that they are written."""
        self.unsynced = []

    def lose_power(self, dice: Random) -> None:
        """Loses writes that were not synced. Small text files get no flipped bits, because without a checksum they
        can't be detected."""
        surviving = bytearray(self.durable)
        share = dice.choice((0.0, 0.5, 0.9, 1.0))
        for at, content in self.unsynced:
            for start in range(0, len(content), SECTOR):
                if dice.random() < share:
                    self._keep(surviving, at + start, content[start : start + SECTOR], dice)
        if self.unsynced and dice.random() < 0.2:  # the size was written, the content was not
            surviving.extend(bytes(max(0, len(self.data) - len(surviving))))
        self.data, self.unsynced = surviving, []
        self.durable = bytes(surviving)

    def _keep(self, surviving: bytearray, at: int, piece: bytes, dice: Random) -> None:
        if dice.random() < 0.02 and not self.is_text:
            piece = bytes(byte ^ (1 << dice.randrange(8)) if dice.random() < DAMAGE else byte for byte in piece)
        surviving.extend(bytes(max(0, at + len(piece) - len(surviving))))
        surviving[at : at + len(piece)] = piece


class Folder:
    """The names in a directory as a process sees them and as the device has them, and the changes between the two."""

    def __init__(self) -> None:
        self.entries: dict[str, File | Folder] = {}
        self.durable: dict[str, File | Folder] = {}
        self.changes: list[Callable[[dict[str, File | Folder]], None]] = []

    def change(self, apply: Callable[[dict[str, File | Folder]], None]) -> None:
        apply(self.entries)
        self.changes.append(apply)

    def sync(self) -> None:
        self.durable, self.changes = dict(self.entries), []

    def lose_power(self, dice: Random) -> None:
        for apply in self.changes[: dice.randint(0, len(self.changes))]:
            apply(self.durable)
        self.entries, self.changes = dict(self.durable), []
        for node in self.entries.values():
            node.lose_power(dice)


class FaultyDisk(Disk):
    """The files from "/" on. It is deterministic: all random numbers come from `dice`, all times from `now_ms`."""

    def __init__(self, dice: Random, *, max_open: int = 100) -> None:
        """`files` and `mappings` limit the files and mappings that a process keeps open."""
        self.max_open = max_open
        self.open_files = OpenFiles(files=max_open, mappings=max_open)
        self.dice = dice
        self.now_ms = 0
        self.root = Folder()
        self.calls = 0
        self.crash_at: int | None = None
        """The number of the call in which the crash occurs."""
        self.fault_rate = 0.0
        """The probability that a call fails with EIO."""
        self.room: int | None = None
        """Number of bytes that can be written before the disk is full."""
        self._handles: dict[int, tuple[str, File]] = {}
        self._next_handle = 3

    # Faults

    def crash(self, *, power: bool) -> None:
        """Leaves the files as the next start finds them."""
        self._handles.clear()
        self.open_files = OpenFiles(files=self.max_open, mappings=self.max_open)
        self.crash_at, self.fault_rate, self.room = None, 0.0, None
        for _, file in self.files():
            file.mappings.clear()
        if power:
            self.root.lose_power(self.dice)

    def _called(self, path: str, *, writes: bool = True) -> None:
        self.calls += 1
        if self.crash_at is not None and self.calls >= self.crash_at and writes:
            raise Crash(path)
        if self.fault_rate and self.dice.random() < self.fault_rate:
            raise OSError(errno.EIO, "Input/output error", path)

    # Names

    def _folder(self, path: str) -> Folder:
        node: File | Folder = self.root
        for name in path.strip("/").split("/") if path.strip("/") else ():
            node_inside = node.entries.get(name) if isinstance(node, Folder) else None
            if node_inside is None:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            node = node_inside
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
        return node

    def _split(self, path: str) -> tuple[Folder, str]:
        parent, name = os.path.split(path)
        return self._folder(parent), name

    def _find(self, path: str) -> File | Folder | None:
        try:
            folder, name = self._split(path)
        except FileNotFoundError:
            return None
        return folder.entries.get(name) if name else folder

    def files(self, folder: Folder | None = None, prefix: str = "") -> Iterator[tuple[str, File]]:
        """Yields all files, by path."""
        for name, node in sorted((folder or self.root).entries.items()):
            if isinstance(node, File):
                yield f"{prefix}/{name}", node
            else:
                yield from self.files(node, f"{prefix}/{name}")

    # Disk

    def open(self, path: str, *, writable: bool = True, create: bool = False, truncate: bool = False) -> int:
        self._called(path, writes=create or truncate)
        folder, name = self._split(path)
        file = folder.entries.get(name)
        if file is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            made = file = File(self.now_ms, is_text=not path.endswith(BINARY))
            folder.change(lambda entries: entries.__setitem__(name, made))
        if not isinstance(file, File):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        if truncate:
            file.cut(0)
        self._next_handle += 1
        self._handles[self._next_handle] = (path, file)
        return self._next_handle

    def close(self, handle: int) -> None:
        self._handles.pop(handle, None)  # after a crash, the objects of the process that is gone are still collected

    def _file(self, handle: int) -> tuple[str, File]:
        return self._handles[handle]

    def pwritev(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        path, file = self._file(handle)
        content = b"".join(map(bytes, buffers))
        try:
            self._called(path)
        except (Crash, OSError):
            file.write(content[: self.dice.randint(0, len(content))], offset)
            raise
        if self.room is not None and len(content) > self.room:
            file.write(content[: self.room], offset)
            self.room = 0
            raise OSError(errno.ENOSPC, "No space left on device", path)
        if self.room is not None:
            self.room -= len(content)
        file.write(content, offset)
        file.modified_ms = self.now_ms
        return len(content)

    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        path, file = self._file(handle)
        self._called(path, writes=False)
        return bytes(file.data[offset : offset + size_bytes])

    def mmap(self, handle: int, length: int) -> memoryview:
        path, file = self._file(handle)
        self._called(path, writes=False)
        if length > len(file.data):
            raise ValueError("mmap length is greater than file size")
        mapping = Mapping(file.data[:length])
        file.mappings.add(mapping)
        return memoryview(mapping).toreadonly()

    def read_ahead(self, handle: int, offset: int, size_bytes: int) -> None:
        """Does nothing, because everything is in memory."""

    def unload(self, mapping: memoryview) -> None:
        """Does nothing: all data stays in memory."""

    def size(self, handle: int) -> int:
        return len(self._file(handle)[1].data)

    def fsync(self, handle: int) -> None:
        path, file = self._file(handle)
        try:
            self._called(path)
        except OSError:
            file.drop_unsynced()
            raise
        file.sync()

    def fdatasync(self, handle: int) -> None:
        self.fsync(handle)

    def ftruncate(self, handle: int, size_bytes: int) -> None:
        path, file = self._file(handle)
        self._called(path)
        file.cut(size_bytes)

    def rename(self, source: str, target: str) -> None:
        self._called(source)
        (folder, old), (target_folder, new) = self._split(source), self._split(target)
        node = folder.entries.get(old)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", source)
        assert folder is target_folder, "nothing is moved between directories"
        moved = node

        def move(entries: dict[str, File | Folder]) -> None:
            entries.pop(old, None)
            entries[new] = moved

        folder.change(move)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        self._called(path)
        if self._find(path) is None:
            if missing_ok:
                return
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        self._remove(path)

    def mkdir(self, path: str, *, parents: bool = False) -> None:
        self._called(path)
        parent = os.path.dirname(path)
        if parents and self._find(parent) is None:
            self.mkdir(parent, parents=True)
        folder, name = self._split(path)
        if name and name not in folder.entries:
            made = Folder()
            folder.change(lambda entries: entries.__setitem__(name, made))

    def _remove(self, path: str) -> None:
        folder, name = self._split(path)

        def remove(entries: dict[str, File | Folder]) -> None:
            entries.pop(name, None)

        folder.change(remove)

    def rmtree(self, path: str) -> None:
        self._called(path)
        if self._find(path) is not None:
            self._remove(path)

    def listdir(self, path: str) -> list[str]:
        self._called(path, writes=False)
        return sorted(self._folder(path).entries)

    def stat(self, path: str) -> FileInfo | None:
        node = self._find(path)
        if isinstance(node, File):
            return FileInfo(len(node.data), node.modified_ms, False)
        return None if node is None else FileInfo(0, 0, True)

    def set_modified(self, path: str, modified_ms: int) -> None:
        node = self._find(path)
        assert isinstance(node, File), path
        node.modified_ms = modified_ms

    def space(self, path: str) -> Space:
        return Space(1 << 40, 1 << 39 if self.room is None else self.room)

    def fsync_dir(self, path: str) -> None:
        self._called(path)
        self._folder(path).sync()
