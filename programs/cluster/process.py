"""One process of the cluster: its start, its end, and its log lines."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

READ_BYTES: Final = 1 << 16
MAX_LINE_BYTES: Final = 1 << 20
"""Longest line that is passed on in one piece, so that a process which writes no line end doesn't fill the memory."""

READY: Final = b"ready "
PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h

_libc = ctypes.CDLL(None, use_errno=True)

Output = Callable[[str, bytes], None]
"""Called with the name of a process and each line that it writes."""


class ChildProcess:
    """A started process. The kernel kills it when this process dies; signals of the terminal don't reach it."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, output: Output) -> None:
        self.name = name
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The address that it serves once it is ready; cancelled if it ends before."""
        self._process = process
        self._output = output
        assert process.stdout is not None
        assert process.stderr is not None
        readers = (self._read(process.stdout, self._ready_line), self._read(process.stderr, self._line))
        self._reading = [asyncio.create_task(reader) for reader in readers]

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ended(self) -> int:
        """Waits until it has ended and its last line is written. Returns its status; negative for a signal."""
        status = await self._process.wait()
        await asyncio.wait(self._reading)
        self.address.cancel()
        return status

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, if it has not ended."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def _read(self, stream: asyncio.StreamReader, line: Callable[[bytes], None]) -> None:
        rest = b""
        while data := await stream.read(READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            for complete_line in lines:
                line(complete_line)
            if len(rest) > MAX_LINE_BYTES:
                line(rest)
                rest = b""
        if rest:
            line(rest)

    def _ready_line(self, line: bytes) -> None:
        if line.startswith(READY) and not self.address.done():
            self.address.set_result(line.removeprefix(READY).decode())
        else:
            self._line(line)

    def _line(self, line: bytes) -> None:
        self._output(self.name, line)


async def start_process(
    name: str, command: Sequence[str], environment: Mapping[str, str], output: Output
) -> ChildProcess:
    """Starts a process. Raises OSError if it can't be started."""
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the call to prctl
            os._exit(1)

    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        preexec_fn=die_with_parent,
        start_new_session=True,  # Ctrl-C goes to the supervisor alone, which stops the controller last
    )
    return ChildProcess(name, process, output)


def describe_status(status: int) -> str:
    """Returns how a process ended, for the log."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def write_line(name: str, line: bytes) -> None:
    """Writes a line of a process on standard error, with its name before it."""
    with suppress(OSError):  # the cluster continues without its terminal
        sys.stderr.buffer.write(b"%s | %s\n" % (name.encode(), line))
        sys.stderr.buffer.flush()
