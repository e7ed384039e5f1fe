"""Tests a share partition on its broker while it is being loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from broker.share.hosted import Hosted
from coordinator.engine.engine import Engine
from coordinator.group.config import GroupConfig
from coordinator.share.key import ShareKey
from coordinator.share_partition.run import StateRecord
from tests.broker.inprocess import InProcess


async def test_a_share_partition_that_is_fenced_before_it_is_loaded_stays_so(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        broker = served.server.broker
        nobody = cast(Any, None)
        engine = Engine[StateRecord](broker.clock, lambda key, error: None)
        partition = broker.replicas.partition("t", 0)
        key = ShareKey("group", bytes(16), 0)
        letters, clock = broker.share_groups.dead_letters, broker.clock
        hosted = Hosted(key, partition, GroupConfig, engine, nobody, letters, clock, nobody, lambda hosted: None)
        hosted.stop()
        await hosted.load()
        assert engine.status(key) is None
        assert not hosted.machine.is_active
