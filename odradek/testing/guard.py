"""A directory of servers that lasts no longer than the process that made it, however that ends.

A shell stands by, at the reading end of a pipe whose writing end this process alone has. When this process is gone, by
whatever signal, the pipe ends, and the shell kills what was started and removes the directory. `PR_SET_PDEATHSIG` would
kill the servers too, but with the end of the *thread* that started them, and it removes no files.
"""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

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
"""It hears `+ PID` of each process that begins, which leads a group, and `- PID` of each that has ended. A process that
is killed writes until it is gone: then `rm` fails, and is tried again."""

ANNOUNCED: Final = 'echo "+ $$" >&0; exec "$@" </dev/null'
"""A server says itself that it begins, before it does: no moment is left in which nobody would end it."""

MADE: Final = b"made\n"


class GuardedDirectory:
    """A temporary directory, and the processes that work in it. `close` ends them, and it; so does the end of this
    process.

    A child that was forked without an exec (`multiprocessing` by fork) has the pipe as well: then all of it ends with
    the last of them.
    """

    def __init__(self) -> None:
        """Raises OSError where there can be no directory."""
        self.path = Path(tempfile.gettempdir()) / f"odradek-{secrets.token_hex(8)}"
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "odradek-guard", str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the tests
        )
        output = _pipe(self._guard.stdout)
        answer = output.readline()
        output.close()
        if answer != MADE:
            self.close()
            raise OSError(f"{self.path}: no directory can be made there")

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], stderr: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Returns a process that leads a session of its own, with a pipe for its standard output."""
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
        """Says that a process has been waited for: its number may be another's from now on."""
        with suppress(OSError):  # somebody has killed the guard: then nobody is left to be told
            pipe = _pipe(self._guard.stdin)
            pipe.write(b"- %d\n" % process.pid)
            pipe.flush()

    def close(self) -> None:
        """Ends the processes, removes the directory, and returns once it is gone. May be called again."""
        pipe = _pipe(self._guard.stdin)
        with suppress(OSError):
            pipe.close()
        self._guard.wait()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "asked for with PIPE"
    return pipe
