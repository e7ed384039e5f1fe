"""A share partition on its broker: what comes between its beginning and its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from broker.share.hosted import Hosted
from coordinator.share_partition.states import Lifecycle
from tests.broker.inprocess import InProcess


async def test_a_share_partition_that_is_fenced_before_it_is_loaded_stays_so(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        broker = served.server.broker
        nobody = cast(Any, None)
        hosted = Hosted(
            nobody, broker.replicas.partition("t", 0), nobody, nobody, nobody, broker.clock, nobody, lambda hosted: None
        )
        hosted.stop()
        await hosted.load()
        assert hosted.engine.lifecycle is Lifecycle.FENCED
