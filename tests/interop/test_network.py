"""Tests the tests' own network: a cut link stops all traffic, and waiting bytes arrive after it has healed."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.network import Network

HERE, THERE = 1, 2
BRIEF_S = 0.1


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    network = Network(tmp_path, lambda: {HERE: os.getpid()})
    yield network
    network.close()


@pytest.fixture
def ends(network: Network) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Returns a connection between two nodes over the network."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = network.before(THERE, f"127.0.0.1:{listener.getsockname()[1]}").split(":")
        with socket.create_connection((host, int(port))) as near:
            far, _ = listener.accept()
            with far:
                yield near, far


def test_bytes_pass_and_it_is_known_between_whom(network: Network, ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    near.sendall(b"there")
    assert far.recv(100) == b"there"
    far.sendall(b"and back")
    assert near.recv(100) == b"and back"
    assert network.carried() == {frozenset((HERE, THERE))}


def test_nothing_passes_a_cut_until_it_heals(network: Network, ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    network.cut(THERE, HERE)
    near.sendall(b"there")
    far.settimeout(BRIEF_S)
    with pytest.raises(TimeoutError):
        far.recv(100)
    network.heal()
    far.settimeout(None)
    assert far.recv(100) == b"there"


def test_another_s_cut_is_none_here(network: Network, ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    network.cut(THERE, 3)
    near.sendall(b"there")
    assert far.recv(100) == b"there"


def test_a_slow_node_gets_all_later(network: Network, ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    network.slow(HERE, BRIEF_S)
    begun_s = time.monotonic()
    near.sendall(b"there")
    assert far.recv(100) == b"there"
    assert time.monotonic() - begun_s >= BRIEF_S


def test_who_ends_a_connection_ends_it_for_both(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    near.close()
    assert far.recv(100) == b""
