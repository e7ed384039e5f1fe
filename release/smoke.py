"""Uses an installed Odradek: runs a broker, writes a record and reads it, stops the broker.

`smoke.py [--compiled | --pure] COMMAND…` where COMMAND starts `odradek`. Exits with 0 if all is as expected. It needs
only the standard library, because it runs where nothing but Odradek is installed.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

READY = "ready "
TIMEOUT_S = 60
CORES = {"compiled": "(compiled core)", "pure": "(pure Python)"}


class Broken(Exception):
    """The installation doesn't do what it should; the message says what."""


def output_of(command: Sequence[str], *words: str, stdin: str = "") -> str:
    """Returns what an `odradek` command prints. Raises Broken if its exit code is not 0."""
    ended = subprocess.run(
        [*command, *words], input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if ended.returncode:
        raise Broken(f"odradek {' '.join(words)}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def check_version(command: Sequence[str], core: str | None) -> None:
    """Raises Broken if the version doesn't name the expected core."""
    version = output_of(command, "--version").strip()
    if core and not version.endswith(CORES[core]):
        raise Broken(f"odradek --version prints {version!r}, expected {CORES[core]}")
    print(version)


def check_records(command: Sequence[str], bootstrap: str) -> None:
    """Writes a record to a new topic and reads it back. Raises Broken if they differ."""
    output_of(command, "topic", "create", "greetings", "-b", bootstrap)
    output_of(command, "produce", "greetings", "-b", bootstrap, stdin="hello\n")
    received = output_of(command, "consume", "greetings", "-b", bootstrap, "-n", "1", "-f", "%v\\n")
    if received != "hello\n":
        raise Broken(f"odradek consume prints {received!r}")


def check_broker(command: Sequence[str], folder: Path) -> None:
    """Runs a broker, uses it, and stops it. Raises Broken."""
    words = [*command, "run", "--listen", "127.0.0.1:0", "--data", str(folder / "data")]
    started = monotonic()
    with (folder / "log").open("w+") as log:
        broker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert broker.stdout is not None
            line = broker.stdout.readline()
            if not line.startswith(READY):
                log.seek(0)
                raise Broken(f"the broker printed {line!r} and logged\n{log.read()}")
            print(f"ready after {monotonic() - started:.2f} s")
            check_records(command, line.removeprefix(READY).strip())
            broker.send_signal(signal.SIGTERM)
            if status := broker.wait(TIMEOUT_S):
                raise Broken(f"the broker ended with {status}")
        finally:
            broker.kill()
            broker.wait()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    core = parser.add_mutually_exclusive_group()
    for name in CORES:
        core.add_argument(f"--{name}", dest="core", action="store_const", const=name)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    try:
        check_version(options.command, options.core)
        with tempfile.TemporaryDirectory(prefix="odradek-smoke-") as folder:
            check_broker(options.command, Path(folder))
    except Broken as error:
        print(error, file=sys.stderr)
        return 1
    print("a record was written and read")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
