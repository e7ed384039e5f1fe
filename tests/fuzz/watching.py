"""Watches a broker's log for problems, and its process for memory and descriptors."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final, NamedTuple

BAD: Final = frozenset({"error", "critical", "exception"})
PLAIN: Final = re.compile(r"^(\$ |ready )")
"""Lines that are not log lines: the command, and its output when it serves."""

LONGEST_TRACE: Final = 3000


class Trouble(NamedTuple):
    """A line that should not be in the log, and the port of its client."""

    text: str
    port: int | None


class Log:
    """A broker's log, which is read as it grows and then truncated, because fuzzing makes it large."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.position = 0

    def troubles(self) -> list[Trouble]:
        """Returns the problems in the lines since the last call."""
        with self.file.open("rb") as log:
            log.seek(self.position)
            data = log.read()
        whole = data.rfind(b"\n") + 1
        self.position += whole
        if self.position > 1 << 24:
            os.truncate(self.file, 0)  # the broker appends: it goes on at the new end
            self.position = 0
        return list(troubles_of(data[:whole].decode(errors="replace").splitlines()))


def troubles_of(lines: list[str]) -> list[Trouble]:
    troubles: list[Trouble] = []
    free: list[str] = []
    for line in lines:
        if line.startswith("{"):
            event = json.loads(line)
            if event.get("level") in BAD or "exception" in event:
                troubles.append(Trouble(f"{event.get('event')}: {json.dumps(event, indent=1)}", port_of(event)))
        elif line and not PLAIN.match(line):
            free.append(line)
    traces = re.split(r"(?m)^(?=Exception in |Task exception|Traceback )", "\n".join(free))
    by_end = {trace.strip().splitlines()[-1]: trace for trace in reversed(traces) if trace.strip()}
    return [*troubles, *(Trouble(trace[-LONGEST_TRACE:], None) for trace in by_end.values())]


def port_of(event: dict[str, object]) -> int | None:
    match = re.search(r":(\d+)$", str(event.get("peer", "")))
    return None if match is None else int(match[1])


def resident_mb(pid: int) -> int:
    """Returns the memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def descriptors(pid: int) -> int:
    """Returns the open files of a process."""
    return len(os.listdir(f"/proc/{pid}/fd"))
