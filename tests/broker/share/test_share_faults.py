"""A share partition that fails by a fault of ours: it is loaded anew, and its members go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.share import hosted
from coordinator.share.records import ShareKey
from tests.broker.share.test_share_fetch import GROUP, Fetching, acquired, eventually, run


class Fault(Exception):
    pass


def fail(*_: object) -> None:
    raise Fault


def test_an_alarm_that_fails_has_the_share_partition_loaded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(fetching: Fetching) -> None:
        fetching.append(3)
        epoch, _ = await eventually(fetching, 0)
        groups = fetching.broker.server.broker.share_groups
        key = ShareKey(GROUP, fetching.topic_id, 0)
        before = groups._hosted[key]
        with monkeypatch.context() as patched:
            patched.setattr(hosted, "expire", fail)
            before._ring()
        assert key not in groups._hosted
        _, response = await eventually(fetching, epoch)
        assert acquired(response) == [(0, 2, 1)]

    run(tmp_path, test)
