"""Tests the benchmark of controllers, without processes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.clusters.makes import Make
from bench.controllers import NODES, ActiveClient, ThreeControllers, table
from client.address import Address


class NoMake(Make):
    """Stores how nodes would be formatted."""

    title = "none"
    ready = re.compile(b"ready")

    def __init__(self) -> None:
        self.formatted: list[tuple[str, tuple[str, ...]]] = []

    def storage_tool(self) -> list[str]:
        return []

    def command(self, properties: Path, *, is_controller: bool) -> list[str]:
        return []

    def format(self, properties: Path, *arguments: str) -> None:
        self.formatted.append((properties.read_text(), arguments))


def test_all_controllers_are_formatted_with_the_same_voters(tmp_path: Path) -> None:
    make = NoMake()
    quorum = ThreeControllers(make, tmp_path)
    quorum.lay_out(3_000)
    voters = ",".join(f"{node}@{quorum.addresses[node]}:{directory}" for node, directory in NODES.items())
    assert [arguments for _, arguments in make.formatted] == [("--initial-controllers", voters)] * 3
    for node_id, (properties, _) in zip(NODES, make.formatted, strict=True):
        assert f"node.id={node_id}\n" in properties
        assert f"listeners=CONTROLLER://{quorum.addresses[node_id]}\n" in properties
        assert "metadata.log.max.record.bytes.between.snapshots=3000\n" in properties


def test_the_snapshot_of_the_formatting_does_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "101" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}-{0:010}.checkpoint").touch()
    quorum = ThreeControllers(NoMake(), tmp_path)
    assert quorum.snapshots(101) == 0
    (folder / f"{17:020}-{1:010}.checkpoint").touch()
    assert quorum.snapshots(101) == 1


def test_the_table_has_a_column_for_each_software() -> None:
    assert table(
        {"A": {"changes per second": 1234.5, "start, s": 1.5}, "B": {"changes per second": 99, "start, s": 2}}
    ) == ("| | A | B |\n|---|---|---|\n| changes per second | 1,234 | 99.00 |\n| start, s | 1.50 | 2.00 |")


class NamedConnection:
    """A connection whose answers are the address to which it was opened."""

    is_ready = True

    def __init__(self, address: Address) -> None:
        self._address = address

    async def send(self, request: object, response: type[object], *, timeout_ms: int) -> Address:
        return self._address


async def test_a_connection_stays_with_its_node_if_another_request_finds_the_active_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quorum = ThreeControllers(NoMake(), tmp_path)
    client = ActiveClient(quorum)
    first, second, _ = NODES
    client.active = first

    async def connect(address: Address, *_: object, timeout_ms: int) -> NamedConnection:
        client.active = second  # what another request does
        return NamedConnection(address)

    monkeypatch.setattr("bench.controllers.connect", connect)
    for node_id in (first, second):
        assert await client.ask("a request", Address, lambda _: 0) == quorum.addresses[node_id]
