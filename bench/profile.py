"""A flame graph of Odradek under one load, by py-spy: `python -m bench.profile LOAD`."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.loads import pick
from bench.peers.brokers import Odradek
from bench.results import RESULTS
from bench.trial import Trial, allow_many_files

SAMPLES_PER_SECOND = 500
PY_SPY = Path(sys.executable).with_name("py-spy")


def record(pid: int, file: Path) -> subprocess.Popen[bytes]:
    """py-spy on a process until it gets an interrupt."""
    options = ("--rate", str(SAMPLES_PER_SECOND), "--nonblocking", "--format", "flamegraph")
    command = [str(PY_SPY), "record", *options, "--output", str(file), "--pid", str(pid)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def profile(name: str, folder: Path) -> Path:
    """Warm up, then one round under py-spy. Raises RuntimeError with py-spy's words when it could not attach."""
    (load,) = pick([name])
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"profile-{name}.svg"
    with tempfile.TemporaryDirectory(prefix="odradek-profile-") as work:
        trial = Trial(Odradek(Path(work)), load, Path(work))
        try:
            trial.open()
            trial.measure(-1)
            trial.topic(0)
            spy = record(trial.peer.pid, file)
            trial.measure(0)
            spy.send_signal(signal.SIGINT)
            _, words = spy.communicate()
        finally:
            trial.close()
    if not file.exists():
        raise RuntimeError(words.decode(errors="replace"))
    return file


if __name__ == "__main__":
    allow_many_files()
    print(profile(sys.argv[1], RESULTS))
