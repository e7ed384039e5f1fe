"""Packages of npm, installed once from a lock file into .cache; and kafkajs, with commands line by line."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from bench.jars import locked
from tests.interop.processes import CACHE, LineClient, run

HERE = Path(__file__).parent / "node"
LOCKED = ("package.json", "package-lock.json")
FILES = (*LOCKED, "client.js", "member.js")


def packages(home: Path, files: Sequence[str], *arguments: str) -> Path:
    """Returns a folder with these files of a folder and the packages of its lock file, installed once."""
    digest = hashlib.sha256(b"".join((home / file).read_bytes() for file in files)).hexdigest()[:12]
    folder = CACHE / "node" / digest
    with locked("node"):
        if not folder.exists():
            made = folder.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            for file in files:
                shutil.copy(home / file, made)
            real = str(made.resolve())  # npm ci takes a path through a link for another package
            run(["npm", "ci", "--prefix", real, "--no-audit", "--no-fund", *arguments], timeout_s=600)
            made.rename(folder)
    return folder


@cache
def installed() -> Path:
    """Returns a folder with the client and its packages."""
    return packages(HERE, FILES)


def line_client(log: Path) -> LineClient:
    """Starts a Node process with kafkajs, which reads commands until it is closed."""
    return LineClient("kafkajs", ["node", str(installed() / "client.js")], log)
