"""kafkajs: installed once by npm from its lock file into .cache, with commands line by line."""

from __future__ import annotations

import hashlib
import shutil
from functools import cache
from pathlib import Path

from bench.jars import locked
from tests.interop.processes import CACHE, LineClient, run

HERE = Path(__file__).parent / "node"
FILES = ("package.json", "package-lock.json", "client.js", "member.js")


@cache
def installed() -> Path:
    """Returns a folder with the client and its packages, installed again if one of the files has changed."""
    digest = hashlib.sha256(b"".join((HERE / file).read_bytes() for file in FILES)).hexdigest()[:12]
    folder = CACHE / "node" / digest
    with locked("node"):
        if not folder.exists():
            made = folder.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            for file in FILES:
                shutil.copy(HERE / file, made)
            run(["npm", "ci", "--prefix", str(made), "--no-audit", "--no-fund"], timeout_s=600)
            made.rename(folder)
    return folder


def line_client(log: Path) -> LineClient:
    """Starts a Node process with kafkajs, which reads commands until it is closed."""
    return LineClient("kafkajs", ["node", str(installed() / "client.js")], log)
