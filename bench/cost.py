"""What a process costs, read from /proc: CPU seconds and resident memory, its descendants included."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
KIB = 1024

# Fields of /proc/PID/stat that follow the command's closing bracket, counted from there (proc(5) counts from the pid).
UTIME, STIME = 11, 12


class Memory(NamedTuple):
    """Resident memory of a process in bytes: now, at its highest, and now without the pages of mapped files.

    Pages of mapped files belong to the page cache, which a broker that reads by other means fills as well, but there
    they are not in its own count.
    """

    resident_bytes: int
    peak_bytes: int
    private_bytes: int


def cpu_seconds_of(stat: str) -> float:
    """User and system time in the text of /proc/PID/stat; the command in it may hold spaces and brackets."""
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[UTIME]) + int(fields[STIME])) / TICKS_PER_SECOND


def memory_of(status: str) -> Memory:
    """VmRSS, VmHWM and RssAnon in the text of /proc/PID/status; a process that is ending has none."""
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Memory(*(int(lines.get(name, "0 kB").split()[0]) * KIB for name in ("VmRSS", "VmHWM", "RssAnon")))


def family(pid: int) -> list[int]:
    """A process and all its descendants: a broker's workers are its cost too."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found.extend(map(int, children.read_text().split()))
    return found


def cpu_seconds(pid: int) -> float:
    return sum(cpu_seconds_of(Path(f"/proc/{one}/stat").read_text()) for one in family(pid))


def memory(pid: int) -> Memory:
    each = [memory_of(Path(f"/proc/{one}/status").read_text()) for one in family(pid)]
    return Memory(*map(sum, zip(*each, strict=True)))
