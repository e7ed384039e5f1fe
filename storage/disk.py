"""Every call on files that the logs make, in one place.

`Disk` is the seam: `OsDisk` is the operating system, and a test's disk that tears, reorders or refuses writes
implements the same primitives. Handles are opaque ints; nothing else in `storage` opens, maps or renames a file.
Errors are `OSError` as the system gives them: it is for the log manager to decide what a failing disk means.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from protocol.types import Buffer as Buffer
from storage.open_files import OpenFiles

FILE_MODE = 0o600
"""Records are nobody else's business: no group, no others."""

DIRECTORY_MODE = 0o700

MAX_BUFFERS = min(1024, os.sysconf("SC_IOV_MAX"))
"""One pwritev takes no more buffers than this (IOV_MAX, 1024 on Linux)."""

PROBE_BYTES = 128 * 1024
"""How far apart the bytes are that are asked for when it matters whether a range is in memory: as much as Linux reads
ahead by default, so that what is in memory comes and goes in pieces of about that size."""

SCRATCH_BYTES = 256 * 1024

CANNOT_TELL = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
"""File systems without RWF_NOWAIT: reads are made on the spot there, as they would be without asking."""

TEMPORARY_SUFFIX = ".tmp"
"""Apache Kafka's suffix for a file that is being replaced; one that is left behind means nothing."""


class FileInfo(NamedTuple):
    """The facts about a path that a log needs: its size, when it last changed, and whether it is a directory."""

    size_bytes: int
    modified_ms: int
    is_directory: bool


class Space(NamedTuple):
    """A volume's size and what is left of it for us, in bytes."""

    total_bytes: int
    usable_bytes: int


class Disk(Protocol):
    """The calls on files that storage is built of. Those with a body are made of the others."""

    open_files: OpenFiles
    """The limits of those of its files that stay open."""

    def open(self, path: str, *, writable: bool = True, create: bool = False, truncate: bool = False) -> int:
        """Returns a handle on the file; `create` makes it (0600) when it is not there."""
        ...

    def close(self, handle: int) -> None:
        """Give the handle back. Mappings made from it stay valid."""
        ...

    def pwritev(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        """Write all of the buffers, one after the other, at the offset; the number of bytes written.

        A short write is continued; when an error is raised, any part of the bytes may have reached the file.
        """
        ...

    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        """Up to that many bytes from the offset; fewer only at the end of the file."""
        ...

    def is_resident(self, handle: int, offset: int, size_bytes: int) -> bool:
        """True when reading these bytes would not wait for the device. A guess: not every page is asked about."""
        return True

    def read_ahead(self, handle: int, offset: int, size_bytes: int) -> None:
        """Return when these bytes are in memory, for a while. For a worker thread, whose interpreter lock is free
        meanwhile: a page fault under a view would hold it."""

    def mmap(self, handle: int, length: int) -> memoryview:
        """Returns a read-only view of the first `length` (> 0) bytes, which the file must already have.

        Later writes within them show through. The mapping lives as long as a view of it does; the file must not
        be truncated below `length` while it lives (the reader would get SIGBUS): replace the file instead.
        """
        ...

    def unload(self, mapping: memoryview) -> None:
        """The pages of a mapping no longer count as this process's memory, until they are read again. They stay in the
        page cache, and views stay valid."""

    def size(self, handle: int) -> int:
        """Bytes in the open file."""
        ...

    def fsync(self, handle: int) -> None:
        """Return when bytes and metadata are on the device. After a failure, never retry: the pages are gone."""
        ...

    def fdatasync(self, handle: int) -> None:
        """Like fsync, without metadata that reading the bytes back does not need."""
        ...

    def ftruncate(self, handle: int, size_bytes: int) -> None:
        """Cut or extend (with zeros, sparse) the file to this size."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move, atomically replacing the target if it is there."""
        ...

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        """Remove a file's name; open handles and mappings of it stay valid."""
        ...

    def mkdir(self, path: str, *, parents: bool = False) -> None:
        """Make a directory (0700); one that is already there is fine."""
        ...

    def rmtree(self, path: str) -> None:
        """Remove a directory and everything in it; nothing there is fine."""
        ...

    def listdir(self, path: str) -> list[str]:
        """Returns the names in a directory, sorted."""
        ...

    def stat(self, path: str) -> FileInfo | None:
        """Size, time of change and kind, or None when nothing is there."""
        ...

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the time of change (a cleaned segment takes over that of the newest segment it replaces)."""
        ...

    def space(self, path: str) -> Space:
        """Size of, and room on, the volume that holds the path."""
        ...

    def fsync_dir(self, path: str) -> None:
        """Make the directory's names (creations, renames, removals) durable."""
        ...

    def exists(self, path: str) -> bool:
        """True when a file or directory of this name is there."""
        return self.stat(path) is not None

    def read_file(self, path: str) -> bytes:
        """Returns the content of a small file. Raises FileNotFoundError when there is none."""
        handle = self.open(path, writable=False)
        try:
            return self.pread(handle, self.size(handle), 0)
        finally:
            self.close(handle)

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Create or overwrite a file in place, and make its bytes durable if `sync`."""
        handle = self.open(path, create=True, truncate=True)
        try:
            self.pwritev(handle, [content], 0)
            if sync:
                self.fsync(handle)
        finally:
            self.close(handle)

    def write_atomically(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Replace a file so that a reader, or a crash, finds the old content or the new, never a part.

        As Kafka's CheckpointFile: write `<path>.tmp`, fsync it, rename it over the target, fsync the directory.
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
        """Go on after a short write: `written` bytes of the buffers are in the file."""
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
        import shutil  # brings three compression modules with it: not for a broker's start

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
