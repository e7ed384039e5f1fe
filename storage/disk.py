"""All file operations of the logs.

`OsDisk` calls the operating system; tests implement the same `Disk` primitives to tear, reorder or fail writes. Handles
are opaque ints. No other module of `storage` opens, maps or renames a file. Errors are the system's `OSError`; the
log manager decides what a failing disk means.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from protocol.lazy import lazy
from protocol.types import Buffer as Buffer
from storage.open_files import OpenFiles

if TYPE_CHECKING:
    import shutil
else:  # with the first removal: it imports three compression modules
    shutil = lazy("shutil")

FILE_MODE = 0o600
"""Only the broker's user may read records: no access for the group or for others."""

DIRECTORY_MODE = 0o700

MAX_BUFFERS = min(1024, os.sysconf("SC_IOV_MAX"))
"""Maximum number of buffers that a pwritev call accepts (IOV_MAX, 1024 on Linux)."""

PROBE_BYTES = 128 * 1024
"""Distance between the bytes that are probed to check whether a range is in memory: Linux's default read-ahead, because
pages enter and leave memory in pieces of about that size."""

SCRATCH_BYTES = 256 * 1024

CANNOT_TELL = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
"""Errors of file systems without RWF_NOWAIT. Their data counts as resident, so that reads happen on the event loop."""

TEMPORARY_SUFFIX = ".tmp"
"""Apache Kafka's suffix for the new content of a file that is being replaced. A leftover file has no meaning."""


class FileInfo(NamedTuple):
    """The facts about a path that a log needs: its size, when it last changed, and whether it is a directory."""

    size_bytes: int
    modified_ms: int
    is_directory: bool


class Space(NamedTuple):
    """A volume's size and the space that the broker may still use, in bytes."""

    total_bytes: int
    usable_bytes: int


class Disk(Protocol):
    """The file operations that storage uses. Methods that have a body call the others."""

    open_files: OpenFiles
    """The limits on files that stay open between uses."""

    def open(self, path: str, *, writable: bool = True, create: bool = False, truncate: bool = False) -> int:
        """Returns a handle on the file; `create` makes the file (0600) if it doesn't exist."""
        ...

    def close(self, handle: int) -> None:
        """Closes the handle. Mappings made from it stay valid."""
        ...

    def pwritev(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        """Writes all buffers in order at the offset, and returns the number of bytes written.

        A short write is continued. After an error, any part of the bytes may have reached the file.
        """
        ...

    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        """Returns `size_bytes` bytes from the offset; fewer only at the end of the file."""
        ...

    def is_resident(self, handle: int, offset: int, size_bytes: int) -> bool:
        """True if reading these bytes would probably not wait for the device. Not every page is probed."""
        return True

    def read_ahead(self, handle: int, offset: int, size_bytes: int) -> None:
        """Reads these bytes into the page cache. For a worker thread: the read releases the interpreter lock, which a
        page fault under a view would hold."""

    def mmap(self, handle: int, length: int) -> memoryview:
        """Returns a read-only view of the first `length` (> 0) bytes, which the file must already have.

        The view shows later writes to these bytes. The mapping lives as long as a view of it; the file must not be
        truncated below `length` meanwhile (the reader would get SIGBUS): replace the file instead.
        """
        ...

    def unload(self, mapping: memoryview) -> None:
        """Releases a mapping's pages, so that they don't count as this process's memory until they are read again. The
        data remains in the page cache, and views stay valid.
        """

    def size(self, handle: int) -> int:
        """Returns the size of the open file in bytes."""
        ...

    def fsync(self, handle: int) -> None:
        """Writes the file's bytes and metadata to the device. Never retry a failed fsync: the system has dropped the
        pages."""
        ...

    def fdatasync(self, handle: int) -> None:
        """Works like fsync, but omits metadata that is not needed to read the bytes back."""
        ...

    def ftruncate(self, handle: int, size_bytes: int) -> None:
        """Cuts or extends (with zeros, sparse) the file to this size."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Renames a file or directory; atomically replaces an existing target."""
        ...

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        """Removes a file's name; open handles and mappings of it stay valid."""
        ...

    def mkdir(self, path: str, *, parents: bool = False) -> None:
        """Makes a directory (0700), unless it exists."""
        ...

    def rmtree(self, path: str) -> None:
        """Removes a directory and everything in it, if it exists."""
        ...

    def listdir(self, path: str) -> list[str]:
        """Returns the names in a directory, sorted."""
        ...

    def stat(self, path: str) -> FileInfo | None:
        """Returns a path's size, modification time and kind, or None if nothing has this path."""
        ...

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Sets the modification time (a cleaned segment gets that of the newest segment it replaces)."""
        ...

    def space(self, path: str) -> Space:
        """Returns the size of the path's volume, and the free space on it."""
        ...

    def fsync_dir(self, path: str) -> None:
        """Makes creations, renames and removals in the directory durable."""
        ...

    def exists(self, path: str) -> bool:
        """True if a file or directory has this path."""
        return self.stat(path) is not None

    def read_file(self, path: str) -> bytes:
        """Returns the content of a small file. Raises FileNotFoundError."""
        handle = self.open(path, writable=False)
        try:
            return self.pread(handle, self.size(handle), 0)
        finally:
            self.close(handle)

    def sync_file(self, path: str) -> None:
        """Makes the bytes of a file durable. Raises FileNotFoundError."""
        handle = self.open(path)
        try:
            self.fsync(handle)
        finally:
            self.close(handle)

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Creates or overwrites a file in place, and makes its bytes durable if `sync`."""
        handle = self.open(path, create=True, truncate=True)
        try:
            self.pwritev(handle, [content], 0)
            if sync:
                self.fsync(handle)
        finally:
            self.close(handle)

    def write_atomically(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Replaces a file atomically: a reader, or a start after a crash, sees either the old content or the new
        content.

        As Kafka's CheckpointFile does, writes `<path>.tmp`, syncs it, renames it to the target, and syncs the
        directory.
        """
        temporary = path + TEMPORARY_SUFFIX
        self.write_file(temporary, content, sync=sync)
        self.rename(temporary, path)
        if sync:
            self.fsync_dir(os.path.dirname(path))


class OsDisk(Disk):
    """The operating system's files."""

    __slots__ = ("open_files",)

    def __init__(self, open_files: OpenFiles | None = None) -> None:
        self.open_files = OpenFiles() if open_files is None else open_files

    def open(self, path: str, *, writable: bool = True, create: bool = False, truncate: bool = False) -> int:
        flags = os.O_CLOEXEC | (os.O_RDWR if writable else os.O_RDONLY)
        flags |= os.O_CREAT if create else 0
        flags |= os.O_TRUNC if truncate else 0
        return os.open(path, flags, FILE_MODE)

    def close(self, handle: int) -> None:
        os.close(handle)

    def pwritev(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        if len(buffers) == 1:
            total = _size(buffers[0])
            written = os.pwrite(handle, buffers[0], offset)
        else:
            total = sum(map(_size, buffers))
            written = os.pwritev(handle, buffers[:MAX_BUFFERS], offset) if total else 0
        if written != total:
            self._write_rest(handle, buffers, offset, written)
        return total

    def _write_rest(self, handle: int, buffers: Sequence[Buffer], offset: int, written: int) -> None:
        """Continues a short write, after which `written` bytes of the buffers are in the file."""
        position = 0
        for buffer in buffers:
            view = memoryview(buffer).cast("B")
            end = position + len(view)
            while written < end:
                written += os.pwrite(handle, view[written - position :], offset + written)
            position = end

    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        data = os.pread(handle, size_bytes, offset)
        while data and len(data) < size_bytes:
            more = os.pread(handle, size_bytes - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def is_resident(self, handle: int, offset: int, size_bytes: int) -> bool:
        end = offset + size_bytes
        try:
            for at in (*range(offset, end, PROBE_BYTES), end - 1):
                os.preadv(handle, (bytearray(1),), at, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in CANNOT_TELL:
                raise
        return True

    def read_ahead(self, handle: int, offset: int, size_bytes: int) -> None:
        os.posix_fadvise(handle, offset, size_bytes, os.POSIX_FADV_WILLNEED)
        scratch, end = bytearray(min(size_bytes, SCRATCH_BYTES)), offset + size_bytes
        while offset < end and (count := os.preadv(handle, (scratch,), offset)):
            offset += count

    def mmap(self, handle: int, length: int) -> memoryview:
        return memoryview(mmap.mmap(handle, length, prot=mmap.PROT_READ))

    def unload(self, mapping: memoryview) -> None:
        if isinstance(mapping.obj, mmap.mmap):
            mapping.obj.madvise(mmap.MADV_DONTNEED)

    def size(self, handle: int) -> int:
        return os.fstat(handle).st_size

    def fsync(self, handle: int) -> None:
        os.fsync(handle)

    def fdatasync(self, handle: int) -> None:
        os.fdatasync(handle)

    def ftruncate(self, handle: int, size_bytes: int) -> None:
        os.ftruncate(handle, size_bytes)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def mkdir(self, path: str, *, parents: bool = False) -> None:
        parent = os.path.dirname(path)
        if parents and parent and not os.path.isdir(parent):
            self.mkdir(parent, parents=True)
        try:
            os.mkdir(path, DIRECTORY_MODE)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def rmtree(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            if os.path.lexists(path):
                raise

    def listdir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def stat(self, path: str) -> FileInfo | None:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return None
        is_directory = status.st_mode & 0o170000 == 0o040000
        return FileInfo(status.st_size, status.st_mtime_ns // 1_000_000, is_directory)

    def set_modified(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def space(self, path: str) -> Space:
        volume = os.statvfs(path)
        return Space(volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize)

    def fsync_dir(self, path: str) -> None:
        handle = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _size(buffer: Buffer) -> int:
    return buffer.nbytes if isinstance(buffer, memoryview) else len(buffer)
