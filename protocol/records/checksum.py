"""CRC-32C (Castagnoli), the checksum of batches and of producer snapshots.

Loads the function directly from the extension module of the package crc32c, because the package itself imports
argparse, importlib.metadata and email, which takes 40 ms of a broker's start.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import TypeAlias

Checksum: TypeAlias = Callable[[bytes | bytearray | memoryview], int]


def _load() -> Checksum:
    package = PathFinder.find_spec("crc32c")
    extension = package and PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if extension is None or extension.loader is None:
        raise ImportError("the package crc32c, or the extension module in it, is not installed", name="crc32c")
    module = extension.loader.create_module(extension)
    assert module is not None
    extension.loader.exec_module(module)
    loaded: Checksum = module.crc32c
    return loaded


crc32c = _load()
"""Returns the CRC-32C of a buffer without a copy. Other threads can run while it reads a large buffer."""
