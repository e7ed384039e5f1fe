"""Lists the logs in a log directory without opening them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from protocol.types import TopicPartition
from storage.disk import Disk
from storage.names import LOG, FolderKind, parse_folder


def stored_logs(directory: str, disk: Disk) -> Iterator[tuple[str, TopicPartition]]:
    """Yields path and partition of each current log: a folder with segments that is not deleted, stray or a future
    log. Raises OSError."""
    for name in disk.listdir(directory):
        folder, path = parse_folder(name), os.path.join(directory, name)
        if folder is None or folder.kind is not FolderKind.CURRENT:
            continue
        info = disk.stat(path)
        if info is not None and info.is_directory and any(file.endswith(LOG) for file in disk.listdir(path)):
            yield path, folder.topic_partition
