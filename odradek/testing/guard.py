"""A directory of servers that is removed when the process that made it ends in any way.

A shell process, the guard, reads from a pipe whose writing end only this process has. When this process ends, by any
signal, the pipe closes, and the guard kills the servers and removes the directory. `PR_SET_PDEATHSIG` would kill the
servers too, but at the end of the *thread* that started them, and it removes no files.
"""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

__tracebackhide__ = True

GUARD: Final = """
trap '' HUP INT TERM QUIT PIPE
mkdir -m 700 -- "$1" || exit
echo made
pids=
while read -r sign pid; do
    case $sign in
        +) pids="$pids $pid" ;;
        -) others=; for other in $pids; do [ "$other" = "$pid" ] || others="$others $other"; done; pids=$others ;;
    esac
done
for pid in $pids; do kill -9 "-$pid"; done
tries=0
until rm -rf -- "$1"; do tries=$((tries + 1)); [ "$tries" -lt 200 ] || exit 1; sleep 0.05; done
"""
"""The guard's script. It reads `+ PID` for each process that starts, which leads a process group, and `- PID` for each
that has ended. `rm` is tried again if it fails, because a killed process may still write files until it is gone."""

ANNOUNCED: Final = 'echo "+ $$" >&0; exec "$@" </dev/null'
"""The start command of a server. It announces itself to the guard before it starts, so that the guard can always kill
it."""

MADE: Final = b"made\n"


class GuardedDirectory:
    """A temporary directory, and the processes that use it. `close`, or the end of this process, kills them and removes
    it.

    A child that was forked without an exec (`multiprocessing` by fork) also has the pipe; then the last of these
    processes counts.
    """

    def __init__(self) -> None:
        """Raises OSError if the directory can't be made."""
        self.path = Path(tempfile.gettempdir()) / f"odradek-{secrets.token_hex(8)}"
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "odradek-guard", str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C must reach only the tests
        )
        output = _pipe(self._guard.stdout)
        answer = output.readline()
        output.close()
        if answer != MADE:
            self.close()
            raise OSError(f"{self.path}: the directory can't be made")

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], stderr: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Starts a process in its own session, with a pipe for its standard output."""
        return subprocess.Popen(
            ["/bin/sh", "-c", ANNOUNCED, "odradek", *command],
            stdin=_pipe(self._guard.stdin),
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=self.path,
            env=dict(environment),
            start_new_session=True,
        )

    def ended(self, process: subprocess.Popen[bytes]) -> None:
        """Tells the guard that a process has ended, because its process id may be used again."""
        with suppress(OSError):  # the guard was killed
            pipe = _pipe(self._guard.stdin)
            pipe.write(b"- %d\n" % process.pid)
            pipe.flush()

    def close(self) -> None:
        """Kills the processes, and waits until the directory is removed. May be called again."""
        pipe = _pipe(self._guard.stdin)
        with suppress(OSError):
            pipe.close()
        self._guard.wait()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "opened with PIPE"
    return pipe
