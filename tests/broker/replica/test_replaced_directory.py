"""Tests the replicas of a log directory that was replaced by another directory before the next start."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from broker.metadata.node import Node
from protocol.types import TopicPartition
from tests.broker.inprocess import InProcess

ORDERS = TopicPartition("orders", 0)


def options(directory: Path, *log_dirs: str) -> dict[str, str]:
    return {
        "metadata.log.dir": f"{directory}/metadata",
        "log.dirs": ",".join(f"{directory}/{log_dir}" for log_dir in log_dirs),
    }


async def with_orders_lost(directory: Path, settings: dict[str, str]) -> None:
    """Creates a topic, and removes the directory that has its log."""
    async with InProcess(directory, settings) as broker:
        await broker.create_topic("orders")
        lost = broker.server.broker.replicas.leader(*ORDERS).log_dir
    shutil.rmtree(lost)


async def test_a_replica_whose_directory_is_missing_is_not_served(tmp_path: Path) -> None:
    settings = options(tmp_path, "disk")
    await with_orders_lost(tmp_path, settings)
    async with InProcess(tmp_path, settings) as broker:
        assert broker.server.broker.replicas.is_offline(ORDERS)


@pytest.mark.parametrize("log_dirs", [("disk",), ("disk-1", "disk-2")])
async def test_a_member_of_a_cluster_begins_anew_where_nothing_can_be_missed(
    log_dirs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[TopicPartition] = []
    monkeypatch.setattr(Node, "begins_anew", True)
    monkeypatch.setattr(Node, "placed", lambda _, name, __: placed.append(name))
    settings = options(tmp_path, *log_dirs)
    await with_orders_lost(tmp_path, settings)
    async with InProcess(tmp_path, settings) as broker:
        is_alone_and_may_come_back = len(log_dirs) > 1
        assert broker.server.broker.replicas.is_offline(ORDERS) is is_alone_and_may_come_back
        assert placed == ([] if is_alone_and_may_come_back else [ORDERS])
