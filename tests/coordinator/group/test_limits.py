"""Tests the limits of a group's members and commits: at each bound, and one above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.group.offsets.commit import commit, commit_transactional
from coordinator.group.state import Client
from protocol.errors import ErrorCode
from tests.coordinator.group.classic.world import ClassicGroups
from tests.coordinator.group.world import Groups
from tests.group_requests import offset_commit, txn_offset_commit

CLIENT = Client(9, "client", "/10.0.0.1")


def test_a_full_classic_group_takes_nobody_new() -> None:
    groups = ClassicGroups(group_max_size=2)
    one, two = groups.stable(2)
    assert groups.join().answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.join(one).waits
    assert two in groups.classic.members


@pytest.mark.parametrize(("decision", "request_of"), [
    (commit, lambda metadata: offset_commit("g", {"t": {0: 1}}, metadata=metadata)),
    (commit_transactional, lambda metadata: txn_offset_commit("g", "t", (1, 0), {"t": {0: 1}}, metadata=metadata)),
], ids=["offset", "offset of a transaction"])  # fmt: skip
def test_metadata_of_an_offset_has_a_greatest_length(decision: Any, request_of: Callable[[str], object]) -> None:
    groups = Groups(offset_metadata_max_bytes=4)
    answers = [groups.ask(decision, request_of(metadata), CLIENT).answer for metadata in ("four", "fives")]
    codes = [answer.topics[0].partitions[0].error_code for answer in answers]
    assert codes == [0, ErrorCode.OFFSET_METADATA_TOO_LARGE]


def test_a_member_id_that_is_never_used_is_forgotten_after_its_session_timeout() -> None:
    groups = ClassicGroups()
    given = groups.join(version=4).answer
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert given.member_id in groups.classic.pending_joins
    groups.advance(10_000)
    assert given.member_id not in groups.classic.pending_joins
