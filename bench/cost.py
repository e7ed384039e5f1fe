"""The cost of a process and its descendants, read from /proc: CPU seconds and resident memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from bench.figures import Cpu

KIB = 1024
CPUCLOCK_SCHED = 2

# Fields of /proc/PID/stat, counted from the closing bracket of the command (proc(5) counts from the pid).
UTIME, STIME = 11, 12


class Memory(NamedTuple):
    """Resident memory of a process in bytes: now, at its peak, and now without the pages of mapped files.

    Pages of mapped files belong to the page cache. A broker that reads without mappings fills it as well, but its own
    memory doesn't show it.
    """

    resident_bytes: int
    peak_bytes: int
    private_bytes: int


class Ticks(NamedTuple):
    """User and system time in clock ticks, which are exact enough for shares but not for a short round."""

    user: int
    system: int


def ticks_of(stat: str) -> Ticks:
    """Returns the times in the text of /proc/PID/stat, whose command may contain spaces and brackets."""
    fields = stat[stat.rindex(")") + 2 :].split()
    return Ticks(int(fields[UTIME]), int(fields[STIME]))


def memory_of(status: str) -> Memory:
    """Returns VmRSS, VmHWM and RssAnon from the text of /proc/PID/status; a process that is ending has none."""
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Memory(*(int(lines.get(name, "0 kB").split()[0]) * KIB for name in ("VmRSS", "VmHWM", "RssAnon")))


def family(pid: int) -> list[int]:
    """Returns a process and all its descendants, because a broker's workers are part of its cost."""
    pids = [pid]
    for parent in pids:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            pids.extend(map(int, children.read_text().split()))
    return pids


def cpu_clock(pid: int) -> int:
    """Returns the id of a process's CPU-time clock, as clock_getcpuclockid(3) computes it. It counts nanoseconds, where
    /proc/PID/stat counts ticks of ten milliseconds, and includes threads that have ended.
    """
    return (~pid << 3) | CPUCLOCK_SCHED


class Spent(NamedTuple):
    """The processor time of a process and its descendants until now."""

    seconds: float
    ticks: Ticks


def spent(pid: int) -> Spent:
    pids = family(pid)
    ticks = [ticks_of(Path(f"/proc/{process}/stat").read_text()) for process in pids]
    return Spent(
        sum(time.clock_gettime(cpu_clock(process)) for process in pids), Ticks(*map(sum, zip(*ticks, strict=True)))
    )


def between(before: Spent, after: Spent) -> Cpu:
    """Returns the processor time between two readings. The kernel's share is only as exact as ticks."""
    user, system = after.ticks.user - before.ticks.user, after.ticks.system - before.ticks.system
    return Cpu(after.seconds - before.seconds, system / (user + system) if user + system else 0.0)


def memory(pid: int) -> Memory:
    """Returns the memory of a process and its descendants. Raises ProcessLookupError if the process has ended: as one
    without memory it would be the cheapest of all brokers."""
    memories = [memory_of(Path(f"/proc/{process}/status").read_text()) for process in family(pid)]
    if not memories[0].resident_bytes:
        raise ProcessLookupError(f"process {pid} has ended")
    return Memory(*map(sum, zip(*memories, strict=True)))
