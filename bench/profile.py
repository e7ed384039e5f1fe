"""Flame graphs of Odradek under a load: `python -m bench.profile LOAD`.

Native frames, of user code and of the kernel, come from perf if this machine has it and permits it. Python's own
functions come from py-spy.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import flame, pages
from bench.loads import pick
from bench.peers.brokers import Odradek
from bench.results import RESULTS
from bench.trial import Trial, allow_many_files

SAMPLES_PER_SECOND = 500
STACK_BYTES = 16_384
"""Bytes recorded of each stack, from which its frames are found, because the interpreter has no frame pointers."""
PY_SPY = Path(sys.executable).with_name("py-spy")
ATTACH_S = 1.0


def py_spy(pid: int, file: Path) -> list[str]:
    """Returns the command that profiles a process until it gets an interrupt, and then writes `file`."""
    options = ("--rate", str(SAMPLES_PER_SECOND), "--nonblocking", "--format", "raw")
    return [str(PY_SPY), "record", *options, "--output", str(file), "--pid", str(pid)]


def perf(pid: int, file: Path) -> list[str]:
    """Returns the command of perf for native frames, otherwise as py_spy; only perf can read the file."""
    options = ("-e", "cpu-clock", "-F", str(SAMPLES_PER_SECOND), "--call-graph", f"dwarf,{STACK_BYTES}")
    return ["perf", "record", *options, "-o", str(file), "-p", str(pid)]


def drawn(title: str, recorded: Path, file: Path) -> Path:
    """Returns the flame graph of perf's recording."""
    command = ["perf", "script", "-i", str(recorded), "--no-inline", "-F", "comm,tid,ip,sym,dso"]
    script = subprocess.run(command, capture_output=True, text=True, check=True)
    file.write_text(flame.svg(title, flame.stacks(script.stdout.splitlines())))
    return file


def watched(trial: Trial, number: int, command: Callable[[int, Path], list[str]], file: Path) -> Path:
    """Runs one round under a profiler. Raises RuntimeError with its output if it could not attach."""
    watching = subprocess.Popen(command(trial.peer.pid, file), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(ATTACH_S)
    trial.measure(number)
    watching.send_signal(signal.SIGINT)
    _, words = watching.communicate()
    if not file.exists():
        raise RuntimeError(words.decode(errors="replace"))
    return file


def profile(name: str, folder: Path) -> list[Path]:
    """Warms up, then runs one round under each profiler; returns the files of the graphs."""
    (load,) = pick([name])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="odradek-profile-") as work, pages.backed(4 * load.size_bytes):
        trial = Trial(Odradek(Path(work)), load, Path(work))
        try:
            trial.open()
            trial.measure(-1)
            functions = watched(trial, 0, py_spy, Path(work) / "functions.txt")
            files = [folder / f"profile-{name}.svg"]
            title = f"{load.title}, Python's functions"
            files[0].write_text(flame.svg(title, flame.folded(functions.read_text().splitlines())))
            if shutil.which("perf") is not None:
                recorded = watched(trial, 1, perf, Path(work) / "perf.data")
                files.append(drawn(load.title, recorded, folder / f"profile-{name}-native.svg"))
        finally:
            trial.close()
    return files


if __name__ == "__main__":
    allow_many_files()
    for file in profile(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else RESULTS):
        print(file)
    if shutil.which("perf") is None:
        print("perf is not installed (Debian: linux-perf): no native frames", file=sys.stderr)
