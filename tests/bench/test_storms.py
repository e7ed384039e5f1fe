"""Tests the benchmark of storms: the figures from its rounds, and the effect of its storms on a listener."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from bench.clients import storm as client
from bench.figures import Sample
from bench.storms import Storm, table

SOON_S = 0.2


def rounds(*p99_ms: float) -> list[Sample]:
    return [{"p50_ms": 0.3, "p99_ms": value, "p999_ms": 2 * value} for value in p99_ms]


def test_a_round_is_held_against_the_calm_one_beside_it() -> None:
    storm = Storm(rounds(1.0, 2.0, 4.0), rounds(2.0, 6.0, 4.0), [10.0, 20.0, 30.0])
    assert storm.ratio == 2.0
    assert storm.p99_ms(storm.stormy) == "4.00 (2.00–6.00)"


def test_each_broker_has_a_line_for_each_kind() -> None:
    storm = Storm(rounds(1.0), rounds(2.0), [1234.0])
    shown = table({"odradek": {"one-by-one": storm, "requesting": storm}, "kafka": {"one-by-one": storm}})
    assert shown.row_count == 3


@pytest.mark.parametrize("kind", ["one-by-one", "two-hundred"])
def test_a_storm_makes_as_many_connections_as_it_says(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=client.AT_ONCE) as listening:
        accepted = 0

        def accept() -> None:
            nonlocal accepted
            while True:
                try:
                    one, _ = listening.accept()
                except OSError:
                    return
                accepted += 1
                one.close()

        accepting = threading.Thread(target=accept)
        accepting.start()
        host, port = listening.getsockname()[:2]
        made = client.KINDS[kind](host, port, time.monotonic() + SOON_S)
        # The kernel hands out connections in their order: once this last one is closed, all before it were accepted.
        with socket.create_connection((host, port)) as last:
            assert last.recv(1) == b""
        listening.shutdown(socket.SHUT_RDWR)
        accepting.join()
    assert 0 < made < accepted


def test_who_listens_no_more_is_asked_again_all_the_same() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()[:2]
    assert client.KINDS["requesting"](host, port, time.monotonic() + SOON_S / 10) == 0


def test_computing_makes_no_connection() -> None:
    assert client.KINDS["computing"]("", 0, time.monotonic() + SOON_S / 10) == 0


def test_no_storm_leaves_the_machine() -> None:
    with pytest.raises(SystemExit, match=r"192\.0\.2\.1 is not this machine"):
        client.main("one-by-one", "192.0.2.1:9092", SOON_S)
