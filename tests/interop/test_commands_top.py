"""Tests `odradek top` on a terminal, and without one."""

from __future__ import annotations

import fcntl
import json
import os
import select
import struct
import subprocess
import termios
import time

import pytest

from tests.interop.brokers import Odradek
from tests.interop.commanding import Feed, call
from tests.interop.conftest import Start

pytestmark = pytest.mark.odradek_only  # it is about the command, not about the broker

ROWS, COLUMNS = 20, 100
PATIENCE_S = 60


def read_until(terminal: int, text: bytes, times: int = 1) -> bytes:
    """Returns everything that the terminal shows up to the n-th occurrence of a text."""
    shown = b""
    deadline = time.monotonic() + PATIENCE_S
    while shown.count(text) < times:
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 65536)
    return shown


def test_a_terminal_has_a_screen_that_is_drawn_anew_until_q_is_pressed(
    start_odradek: Start, capsys: pytest.CaptureFixture[str], feed: Feed
) -> None:
    broker = start_odradek()
    assert call(capsys, broker.bootstrap, ("topic", "create", "orders", "-p", "2")).status == 0
    feed(b"one\ntwo\n")
    assert call(capsys, broker.bootstrap, ("produce", "orders")).status == 0
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    command = [Odradek.program, "top", "--every", "50ms", "-b", broker.bootstrap]
    environment = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
    top = subprocess.Popen(command, stdin=theirs, stdout=theirs, env=environment)
    os.close(theirs)
    try:
        shown = read_until(ours, b"orders", 3)
        assert shown.startswith(b"\x1b[?1049h")
        assert b"RECORDS/S" in shown
        os.write(ours, b"q")
        read_until(ours, b"\x1b[?1049l")
        assert top.wait(PATIENCE_S) == 0
    finally:
        top.kill()
        top.wait()
        os.close(ours)


def test_a_number_of_samples_stays_on_the_terminal(start_odradek: Start) -> None:
    broker = start_odradek()
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    command = [Odradek.program, "top", "-n", "1", "-b", broker.bootstrap]
    top = subprocess.Popen(command, stdin=theirs, stdout=theirs)
    os.close(theirs)
    try:
        assert top.wait(PATIENCE_S) == 0
        shown = os.read(ours, 65536)
    finally:
        top.kill()
        top.wait()
        os.close(ours)
    assert shown.startswith(b"topics\r\n")
    assert b"\x1b" not in shown


def test_elsewhere_each_sample_is_a_line(start_odradek: Start, capsys: pytest.CaptureFixture[str]) -> None:
    broker = start_odradek()
    call(capsys, broker.bootstrap, ("topic", "create", "orders", "-p", "2"))
    outcome = call(capsys, broker.bootstrap, ("top", "-n", "2", "--every", "10ms"))
    samples = [json.loads(line) for line in outcome.out.splitlines()]
    assert [sample["topics"][0]["records_per_s"] for sample in samples] == [None, 0.0]
    assert samples[0]["groups"] == samples[0]["clients"] == []
    assert call(capsys, broker.bootstrap, ("top", "--every", "often")).status == 2
