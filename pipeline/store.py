"""A store of Parquet files that changes only by whole runs.

    OUT/topic=…/date=…/hour=…/part-….parquet   what is loaded
    OUT/_quarantine/topic=…/…                  what could not be decoded, with the reason
    OUT/_manifests/00000000000000000007.json   one per run; creating it is the commit
    OUT/_staging/RUN/kind=…/topic=…/…          what a run has written so far
    OUT/_lock                                  held by the one writer

A run stages its files, then creates its manifest, then moves the files to their places. A crash before the manifest
leaves staged files, which the next run deletes; a crash after it leaves files in staging, which the next run that opens
the store moves. So even a reader without knowledge of manifests sees only committed records.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.manifest import File, Manifest, StoreState, folded

MANIFESTS, STAGING, QUARANTINE, LOCK = "_manifests", "_staging", "_quarantine", "_lock"
KINDS = {False: "loaded", True: "quarantine"}
PUBLISHING_TIMEOUT_S = 60

Hook = Callable[[str], None]
"""Called when a run has reached a stage. Tests end the process there."""


def nowhere(_: str) -> None:
    """The hook of a run outside of tests."""


class Store:
    """A store in a directory that all of Spark's workers see under the same path."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).absolute()

    @contextmanager
    def writing(self) -> Iterator[StoreState]:
        """Locks the store for the only writer, and finishes or removes what earlier runs left.

        Raises PipelineError if there is another writer.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PipelineError(f"{self.root}: another run is writing to it") from None
            self._finish()
            shutil.rmtree(self.root / STAGING, ignore_errors=True)
            yield self.state()

    def reading(self) -> StoreState:
        """Returns the last committed state, after all of its files are in place. Raises PipelineError if nothing was
        committed.
        """
        if not (self.root / MANIFESTS).is_dir():
            raise PipelineError(f"{self.root}: nothing was loaded there")
        deadline = time.monotonic() + PUBLISHING_TIMEOUT_S
        with (self.root / LOCK).open("a") as lock:
            while self._unfinished() is not None:
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._finish()
                    break
                if time.monotonic() > deadline:
                    raise PipelineError(
                        f"{self.root}: the files of a committed run were not in place after {PUBLISHING_TIMEOUT_S} s"
                    )
                time.sleep(0.05)
        return self.state()

    def state(self) -> StoreState:
        return folded(Manifest.from_json(path.read_text(), str(path)) for path in self._manifests())

    def staging(self, run: str) -> Path:
        return self.root / STAGING / run

    def staged(self, run: str, file: File) -> Path:
        inner = file.path.removeprefix(f"{QUARANTINE}/")
        return self.staging(run) / f"kind={KINDS[file.quarantined]}" / inner

    def commit(self, manifest: Manifest, at: Hook = nowhere) -> StoreState:
        """Commits a run. When it returns, the commit is durable, even if the power fails."""
        for file in manifest.added:
            _sync(self.staged(manifest.run, file))
        folder = self.root / MANIFESTS
        folder.mkdir(exist_ok=True)
        made = folder / f".{manifest.run}.new"
        made.write_text(manifest.to_json())
        _sync(made)
        at("synced")
        made.rename(folder / f"{manifest.sequence:020}.json")
        _sync(folder)
        at("committed")
        self._publish(manifest, at)
        return self.state()

    def _manifests(self) -> list[Path]:
        return sorted((self.root / MANIFESTS).glob("[0-9]*.json"))

    def _unfinished(self) -> Manifest | None:
        """Returns the last run if some of its files are not in place yet."""
        manifests = self._manifests()
        if not manifests:
            return None
        last = Manifest.from_json(manifests[-1].read_text(), str(manifests[-1]))
        return last if self.staging(last.run).exists() else None

    def _finish(self) -> None:
        if (manifest := self._unfinished()) is not None:
            self._publish(manifest, nowhere)

    def _publish(self, manifest: Manifest, at: Hook) -> None:
        """Moves staged files to their places, and deletes the files that they supersede.

        It can be repeated; the staging folder is removed last.
        """
        for path in (*manifest.removed, *self._of_topics(manifest)):
            self._delete(path)
        for number, file in enumerate(manifest.added):
            staged, target = self.staged(manifest.run, file), self.root / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                staged.rename(target)
            if not target.exists():
                raise PipelineError(f"{target}: run {manifest.run} committed this file, but it is missing")
            if number == 0:
                at("publishing")
        shutil.rmtree(self.staging(manifest.run))
        at("published")

    def _of_topics(self, manifest: Manifest) -> list[str]:
        """Returns the files of dropped topics, without the run's own."""
        own = {file.path for file in manifest.added}
        files = [
            path.relative_to(self.root).as_posix()
            for topic in manifest.dropped
            for folder in (self.root, self.root / QUARANTINE)
            for path in (folder / f"topic={topic}").rglob("*.parquet")
        ]
        return [path for path in files if path not in own]

    def _delete(self, path: str) -> None:
        file = self.root / path
        file.unlink(missing_ok=True)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        for folder in file.parents:
            if folder == self.root:
                break
            with suppress(OSError):
                folder.rmdir()


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
