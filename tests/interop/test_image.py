"""Runs the image that `make image` built: `make test-image` runs this."""

from __future__ import annotations

import gzip
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from release.image import composer, engine
from tests.interop.processes import ROOT, Server, free_port, run
from tests.waiting import wait_until

pytestmark = [pytest.mark.odradek_only, pytest.mark.release]

IMAGE = "odradek"
MAX_UNPACKED_MB = 120
COMPILED = "cramjam, crc32c, librt.strings, lz4.block, lz4.frame, re2, uvloop.loop, xxhash, zstandard.backend_c"
"""Modules of the dependencies from which symbols were removed."""

HEALTHY = ["python", "-P", "/opt/odradek/healthy.py"]


@pytest.fixture(scope="module")
def program() -> str:
    return engine()


@pytest.fixture
def volume(program: str) -> Iterator[str]:
    """Makes a volume for the data."""
    name = run([program, "volume", "create"]).stdout.decode().strip()
    yield name
    run([program, "volume", "rm", "--force", name], check=False)


class Container:
    """A broker in a container with a root filesystem that can't be written to."""

    def __init__(self, program: str, volume: str, folder: Path) -> None:
        self._program = program
        self._name = f"odradek-{free_port()}"
        self.port = free_port()
        self._server = Server(self._name, folder / "log")
        options = [
            *("--name", self._name, "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "all"),
            *("--publish", f"127.0.0.1:{self.port}:{self.port}", "--volume", f"{volume}:/data"),
            *("--env", f"KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:{self.port}"),
            *("--env", f"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{self.port}"),
            *("--env", "KAFKA_NUM_PARTITIONS=3"),
        ]
        self._server.launch([program, "run", *options, IMAGE], r"^ready localhost:\d+\s*$", 120)

    def does(self, *words: str) -> str:
        """Runs a command in the container and returns what it prints."""
        return run([self._program, "exec", self._name, *words]).stdout.decode()

    def stop(self) -> int:
        """Stops the container, which gets SIGTERM; returns the broker's exit code."""
        run([self._program, "stop", "--time", "20", self._name])
        return self._server.wait()


def test_a_broker_runs_stops_and_keeps_its_records(program: str, volume: str, tmp_path: Path) -> None:
    container = Container(program, volume, tmp_path)
    address = f"localhost:{container.port}"
    run(["kcat", "-b", address, "-t", "greetings", "-P"], stdin=b"hello\n")
    assert container.does("odradek", "--version").strip().endswith("(compiled core)")
    assert container.does("id", "-u").strip() == "1001"
    described = container.does("odradek", "topic", "describe", "greetings", "-b", address, "-o", "json")
    assert described.count('"partition":') == 3
    container.does(*HEALTHY)
    container.does("python", "-c", f"import {COMPILED}")
    imported = container.does("sh", "-c", f"python -v -c 'import odradek, crc32c, {COMPILED}' 2>&1")
    assert "bytecode is stale" not in imported
    assert "site-packages/crc32c/__pycache__" in imported
    assert container.stop() == 0

    container = Container(program, volume, tmp_path)
    address = f"localhost:{container.port}"
    assert run(["kcat", "-b", address, "-t", "greetings", "-C", "-e", "-q"]).stdout == b"hello\n"
    assert container.stop() == 0


def test_the_image_is_small(program: str) -> None:
    unpacked_mb = int(run([program, "image", "inspect", "--format", "{{.Size}}", IMAGE]).stdout) / 1e6
    with subprocess.Popen([program, "save", IMAGE], stdout=subprocess.PIPE) as saving:
        assert saving.stdout is not None
        size_mb = len(gzip.compress(saving.stdout.read(), 6)) / 1e6
    print(f"{size_mb:.0f} MB compressed, {unpacked_mb:.0f} MB unpacked")
    assert unpacked_mb < MAX_UNPACKED_MB


def test_no_program_of_the_image_changes_its_user(program: str) -> None:
    found = run([program, "run", "--rm", "--user", "0", IMAGE, "sh", "-c", "find / -xdev -type f -perm /6000"])
    assert found.stdout == b""


@contextmanager
def composed(name: str) -> Iterator[None]:
    """Starts the services of a compose file of docker/, and removes them with their volumes."""
    words = [*composer(), "-p", f"odradek{free_port()}", "-f", str(ROOT / "docker" / name)]
    try:
        run([*words, "up", "-d"])
        yield
    finally:
        run([*words, "down", "-v"], check=False)


def brokers(address: str) -> int:
    """Returns the number of brokers that a broker knows; 0 if it doesn't serve yet."""
    listed = run(["kcat", "-b", address, "-L", "-m", "2"], check=False).stdout.decode()
    return len(re.findall(r"^  broker \d+ at", listed, re.MULTILINE))


@pytest.mark.parametrize(("name", "count"), [("compose.yaml", 1), ("cluster.yaml", 3), ("combined.yaml", 3)])
def test_a_compose_file_starts_brokers_that_clients_of_this_machine_reach(name: str, count: int) -> None:
    first, last = "127.0.0.1:9092", f"127.0.0.1:{9090 + 2 * count}"
    with composed(name):
        wait_until(lambda: brokers(first) == count, lambda: "not all brokers serve")
        run(["kcat", "-b", first, "-t", "greetings", "-P"], stdin=b"hello\n")
        assert run(["kcat", "-b", last, "-t", "greetings", "-C", "-e", "-q"]).stdout == b"hello\n"
