"""The cost of a process, read from /proc: CPU seconds and resident memory, its descendants included."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from bench.figures import Cpu

KIB = 1024
CPUCLOCK_SCHED = 2

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


class Ticks(NamedTuple):
    """User and system time in clock ticks: good for shares, too coarse for a short round."""

    user: int
    system: int


def ticks_of(stat: str) -> Ticks:
    """Returns the times in the text of /proc/PID/stat; the command in it may hold spaces and brackets."""
    fields = stat[stat.rindex(")") + 2 :].split()
    return Ticks(int(fields[UTIME]), int(fields[STIME]))


def memory_of(status: str) -> Memory:
    """VmRSS, VmHWM and RssAnon in the text of /proc/PID/status; a process that is ending has none."""
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Memory(*(int(lines.get(name, "0 kB").split()[0]) * KIB for name in ("VmRSS", "VmHWM", "RssAnon")))


def family(pid: int) -> list[int]:
    """Returns a process and all its descendants: a broker's workers are its cost too."""
    pids = [pid]
    for parent in pids:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            pids.extend(map(int, children.read_text().split()))
    return pids


def cpu_clock(pid: int) -> int:
    """Returns the clock of a process's time on the processors, as clock_getcpuclockid(3) makes it: nanoseconds, where
    /proc/PID/stat has ticks of ten milliseconds. Threads that have ended are in it."""
    return (~pid << 3) | CPUCLOCK_SCHED


class Spent(NamedTuple):
    """The processor time of a process and its descendants so far."""

    seconds: float
    ticks: Ticks


def spent(pid: int) -> Spent:
    pids = family(pid)
    ticks = [ticks_of(Path(f"/proc/{one}/stat").read_text()) for one in pids]
    return Spent(sum(time.clock_gettime(cpu_clock(one)) for one in pids), Ticks(*map(sum, zip(*ticks, strict=True))))


def between(before: Spent, after: Spent) -> Cpu:
    """Returns the time between two readings. The kernel's share is as fine as ticks are."""
    user, system = after.ticks.user - before.ticks.user, after.ticks.system - before.ticks.system
    return Cpu(after.seconds - before.seconds, system / (user + system) if user + system else 0.0)


def memory(pid: int) -> Memory:
    memories = [memory_of(Path(f"/proc/{one}/status").read_text()) for one in family(pid)]
    return Memory(*map(sum, zip(*memories, strict=True)))
