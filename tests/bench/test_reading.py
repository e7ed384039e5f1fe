"""Tests figures that are read from /proc, from the network, and from a file of results."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time

import pytest

from bench import cost, wire
from bench.cost import Memory, Spent, Ticks
from bench.figures import Cpu
from bench.loads import LOADS
from bench.results import PeerResult, from_json, result_of, to_json

STAT = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 7 7 20 0 9 0 100 1000 200 18446744073709551615"
STATUS = "Name:\tx\nVmPeak:\t  999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\nThreads:\t9\n"


def test_cpu_time_is_user_and_system_whatever_the_command_is_called() -> None:
    assert cost.ticks_of(STAT) == Ticks(user=250, system=50)


def test_what_is_spent_meanwhile_is_seconds_and_the_kernels_share_of_the_ticks() -> None:
    before, after = Spent(1.0, Ticks(10, 10)), Spent(1.5, Ticks(40, 20))
    assert cost.between(before, after) == Cpu(total_s=0.5, kernel_share=0.25)
    assert cost.between(before, before) == Cpu(total_s=0.0, kernel_share=0.0)


def test_a_process_has_spent_what_its_own_clock_shows() -> None:
    before = time.process_time()
    spent = cost.spent(os.getpid())
    assert before <= spent.seconds <= time.process_time()


def test_memory_is_resident_now_and_at_its_peak() -> None:
    assert cost.memory_of(STATUS) == Memory(1024 * 1024, 2048 * 1024, 512 * 1024)


def test_a_process_that_is_ending_has_no_memory() -> None:
    assert cost.memory_of("Name:\tx\nState:\tZ (zombie)\n") == Memory(0, 0, 0)


def test_a_process_that_has_ended_is_not_measured() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    try:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        with pytest.raises(ProcessLookupError, match=f"process {ended.pid} has ended"):
            cost.memory(ended.pid)
    finally:
        ended.wait()


def test_a_request_is_framed_with_its_header() -> None:
    assert bytes.fromhex("00000013 0003 0001 00000001 0005 62656e6368 00000000") == wire.METADATA_REQUEST


def test_metadata_without_a_broker_is_no_answer_yet() -> None:
    assert not wire.names_a_broker(struct.pack(">ii", 0, 1))
    assert wire.names_a_broker(struct.pack(">ii", 1, 1))


def test_results_come_back_from_their_file_as_they_were() -> None:
    warm_up = ({"mb_per_s": 0.5},)
    peers = {
        "odradek": PeerResult("Odradek", [{"mb_per_s": 1.0}], warm_up=warm_up),
        "floor": PeerResult("floor", [], "has no protocol"),
    }
    result = result_of(LOADS["produce"], peers, 12.3)
    assert from_json(to_json(result)) == result
