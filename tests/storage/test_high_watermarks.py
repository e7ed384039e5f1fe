"""Tests `replication-offset-checkpoint`: the high watermarks over starts and stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.log import Log
from storage.logs import Logs
from tests.storage.managing import TOPIC, create, place, start
from tests.storage.writing import NOW_MS


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def filled(logs: Logs) -> Log:
    """Returns a log with two records, none of which is committed."""
    create(logs, 0, "a", "b")
    log = logs.get(place(0))
    assert log is not None
    log.high_watermark = 0
    return log


def checkpointed(data: Path) -> str:
    return (data / "replication-offset-checkpoint").read_text()


def test_a_high_watermark_survives_a_kill_as_it_was_checkpointed(data: Path) -> None:
    logs = start(data)
    filled(logs).update_high_watermark(1)
    logs.write_high_watermarks()
    assert checkpointed(data) == f"0\n1\n{TOPIC} 0 1\n"
    (log,) = start(data)
    assert (log.high_watermark, log.log_end_offset) == (1, 2)


def test_a_clean_stop_writes_high_watermarks(data: Path) -> None:
    logs = start(data)
    filled(logs).update_high_watermark(2)
    logs.close(NOW_MS)
    (log,) = start(data)
    assert log.high_watermark == 2


def test_a_high_watermark_beyond_what_is_left_of_a_log_is_its_end(data: Path) -> None:
    logs = start(data)
    filled(logs)
    logs.close(NOW_MS)
    (data / "replication-offset-checkpoint").write_text(f"0\n1\n{TOPIC} 0 99\n")
    (log,) = start(data)
    assert log.high_watermark == 2


def test_without_a_checkpoint_nothing_is_known_to_be_committed(data: Path) -> None:
    logs = start(data)
    filled(logs)
    (log,) = start(data)
    assert log.high_watermark == 0


def test_high_watermarks_that_stand_still_are_not_written_again(data: Path) -> None:
    logs = start(data)
    filled(logs)
    logs.write_high_watermarks()
    (data / "replication-offset-checkpoint").unlink()
    logs.write_high_watermarks()
    assert not (data / "replication-offset-checkpoint").exists()


def test_a_truncation_takes_the_high_watermark_with_it_on_the_disk_too(data: Path) -> None:
    logs = start(data)
    filled(logs).update_high_watermark(2)
    logs.write_high_watermarks()
    logs.truncate_to(place(0), 1, NOW_MS)
    assert checkpointed(data) == f"0\n1\n{TOPIC} 0 1\n"
