"""`meta.properties`: the owner of a log directory. Kafka classes MetaProperties (version 1) and PropertiesUtils."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from protocol.types import Uuid, uuid_from_text, uuid_to_text
from storage.checkpoint import CorruptCheckpoint
from storage.disk import Disk

META_PROPERTIES = "meta.properties"
VERSION = 1
"""Version of the file. Version 0 belongs to clusters on ZooKeeper; neither Kafka 4 nor Odradek opens it."""

_ESCAPED = re.compile(r"\\(.)")

_WITHOUT_DIRECTORY_ID = re.compile(r"\s*([#!][^=]*|(version|cluster\.id|node\.id|broker\.id)\s*=(\\.|[^\\=])*)?")
"""A line of a file from before Kafka 3.7, which has no directory.id. Any other line may be a damaged directory.id."""


class MetaProperties(NamedTuple):
    """The owner of a log directory. Brokers assign replicas to the directory by `directory_id` (KIP-858)."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None


def read_meta_properties(disk: Disk, log_dir: str) -> MetaProperties | None:
    """Returns the owner of a log directory; None if it was never formatted. Raises CorruptCheckpoint."""
    path = os.path.join(log_dir, META_PROPERTIES)
    try:
        text = disk.read_file(path).decode("utf-8", "backslashreplace")
    except FileNotFoundError:
        return None
    properties = _parse(text)
    _require(path, properties, "version", str(VERSION), f"'version={VERSION}'")
    cluster_id = _require(path, properties, "cluster.id", r".+", "'cluster.id=' and the cluster's id")
    node_id = _require(path, properties, "node.id", r"\d+", "'node.id=' and a number")
    directory_id = None
    if "directory.id" not in properties:
        _check_without_directory_id(path, text)
    else:
        text = _require(path, properties, "directory.id", r"[\w-]{22}", "'directory.id=' and 22 characters of base64")
        directory_id = uuid_from_text(text)
    return MetaProperties(cluster_id, int(node_id), directory_id)


def write_meta_properties(disk: Disk, log_dir: str, properties: MetaProperties) -> None:
    """Writes the owner of a log directory, atomically and durably."""
    lines = [f"cluster.id={_escape(properties.cluster_id)}"]
    if properties.directory_id is not None:
        lines.append(f"directory.id={uuid_to_text(properties.directory_id)}")
    lines += [f"node.id={properties.node_id}", f"version={VERSION}", ""]
    disk.write_atomically(os.path.join(log_dir, META_PROPERTIES), "\n".join(lines).encode())


def _parse(text: str) -> dict[str, tuple[int, str, str]]:
    """Maps each key to line number, line and value. Reads the subset of Java properties that Kafka writes here."""
    properties: dict[str, tuple[int, str, str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, separator, value = line.strip().partition("=")
        if separator and not key.startswith(("#", "!")):
            properties[key.strip()] = number, line, _ESCAPED.sub(r"\1", value.strip())
    return properties


def _require(path: str, properties: dict[str, tuple[int, str, str]], key: str, pattern: str, expected: str) -> str:
    number, line, value = properties.get(key, (1, "", ""))
    if re.fullmatch(pattern, value) is None:
        raise CorruptCheckpoint(path, number, line, expected)
    return value


def _check_without_directory_id(path: str, text: str) -> None:
    """Raises CorruptCheckpoint for a line that may be a damaged directory.id. Without the id, the cluster would assume
    that the directory is new and empty.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if _WITHOUT_DIRECTORY_ID.fullmatch(line) is None:
            raise CorruptCheckpoint(path, number, line, "a line of meta.properties, which has no directory.id")


def _escape(value: str) -> str:
    """Escapes a value as Java's Properties.store does."""
    return re.sub(r"([\\:=#!])", r"\\\1", value)
