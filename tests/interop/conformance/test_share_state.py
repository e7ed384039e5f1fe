"""Compares requests for share group state with Apache Kafka: every request, every wrong step."""

from __future__ import annotations

import pytest

from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from protocol.types import uuid_to_text
from tests.interop.conformance.compare import Both
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.sharing import OWN_WORDS, StateOf, note_records

SHARE, FIND_VERSION = 2, 6
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
UPDATES = 500
NO_TOPIC = b"\x01" * 16


def state_of(peer: Peer, group: str, partitions: int = 1) -> StateOf:
    """Returns the state of a new topic's share partition, whose coordinator is ready."""
    topic_id = peer.create(group, partitions)
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[f"{group}:{uuid_to_text(topic_id)}:0"])
    peer.wait_for(request, FIND_VERSION, lambda answer: not answer.coordinators[0].error_code)
    state = StateOf(peer, group, topic_id)
    peer.wait_for(state.summary_request(), 1, lambda answer: not answer.results[0].partitions[0].error_code)
    return state


def test_a_state_from_its_beginning_to_its_end(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        state = state_of(peer, topic)
        state.summary()
        state.initialize(1, 5)
        state.summary()
        state.read(0)
        state.write(1, 0, 5, (5, 9, ACKNOWLEDGED, 1), (10, 14, AVAILABLE, 1), complete=5)
        state.read(0)
        state.summary()
        state.write(1, 0, 10, (12, 12, ARCHIVED, 2), complete=1)
        state.read(0)
        state.read(1)
        state.write(1, 1, -1, (10, 11, ACKNOWLEDGED, 2), complete=3)
        state.read(1)
        state.summary()
        state.delete()
        state.summary()
        state.read(1)
        state.delete()
        note_records(peer, topic)

    both(script, allowed=OWN_WORDS)


def test_what_is_not_known(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        state = state_of(peer, topic)
        named = [(topic, NO_TOPIC, 0), (topic, bytes(16), 0), ("", state.topic_id, 0)]
        for key in (*named, *((topic, state.topic_id, index) for index in (7, -1))):
            missing = StateOf(peer, *key)
            missing.read(0)
            missing.write(0, 0, 0, (0, 0, ACKNOWLEDGED, 1))
            missing.summary()
            missing.initialize(0, 0)
            missing.delete()
        state.read(0)
        state.write(0, 0, 0, (0, 0, ACKNOWLEDGED, 1))

    both(script, allowed=OWN_WORDS)


def test_who_is_behind_is_fenced(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        state = state_of(peer, topic)
        state.initialize(3, 0)
        state.read(5)
        state.read(4)
        state.write(3, 4, 0, (0, 3, ACKNOWLEDGED, 1))
        state.write(2, 5, 0, (0, 3, ACKNOWLEDGED, 1))
        state.write(3, 5, 0, (0, 3, ACKNOWLEDGED, 1))
        state.write(4, 6, 0, (4, 5, ACKNOWLEDGED, 1))
        state.initialize(2, 9)
        state.initialize(3, 9)
        state.summary(leader_epoch=1)
        state.read(9)
        state.summary(leader_epoch=-1)
        state.read(-1)
        state.write(-1, -1, 12, (12, 12, ACKNOWLEDGED, 1))
        state.initialize(7, -1)
        state.read(9)
        state.write(7, 12, 3, (3, 3, ACKNOWLEDGED, 1), complete=1)
        state.summary()
        state.read(11)
        state.read(12)
        note_records(peer, topic)

    both(script, allowed=OWN_WORDS)


BATCHES = {
    "neighbours alike": [((0, 4, AVAILABLE, 1), (5, 9, AVAILABLE, 1))],
    "neighbours apart": [((0, 4, AVAILABLE, 1), (5, 9, AVAILABLE, 2))],
    "a hole": [((0, 4, ACKNOWLEDGED, 1), (6, 9, ACKNOWLEDGED, 1))],
    "the middle": [((0, 9, AVAILABLE, 1),), ((3, 5, ACKNOWLEDGED, 1),)],
    "the middle, delivered more often": [((0, 9, AVAILABLE, 1),), ((3, 5, AVAILABLE, 2),), ((4, 4, ARCHIVED, 3),)],
    "the end and beyond": [((0, 9, AVAILABLE, 2),), ((8, 12, ACKNOWLEDGED, 2),)],
    "the beginning": [((5, 9, AVAILABLE, 2),), ((2, 6, ACKNOWLEDGED, 2),)],
    "a count that falls": [((0, 9, AVAILABLE, 3),), ((2, 6, ACKNOWLEDGED, 2),)],
    "over several": [((0, 2, AVAILABLE, 1), (3, 5, AVAILABLE, 2), (6, 8, AVAILABLE, 3)), ((1, 7, ACKNOWLEDGED, 2),)],
    "all the same": [((0, 9, ACKNOWLEDGED, 1),), ((0, 9, ACKNOWLEDGED, 1),)],
    "out of order": [((6, 9, AVAILABLE, 1), (0, 3, AVAILABLE, 1))],
    "overlapping itself": [((0, 6, AVAILABLE, 1), (4, 9, ACKNOWLEDGED, 1))],
}


@pytest.mark.parametrize("writes", BATCHES.values(), ids=BATCHES)
def test_batches_are_combined(both: Both, topic: str, writes: list[tuple[tuple[int, int, int, int], ...]]) -> None:
    def script(peer: Peer) -> None:
        state = state_of(peer, topic)
        state.initialize(1, 0)
        for batches in writes:
            state.write(1, 0, 0, *batches)
            state.read(0)
        state.write(1, 0, 4, (11, 11, AVAILABLE, 1))
        state.read(0)
        note_records(peer, topic)

    both(script, allowed=OWN_WORDS)


def test_after_so_many_updates_there_is_a_snapshot(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        state = state_of(peer, topic)
        state.initialize(1, 0)
        for offset in range(UPDATES + 2):
            state.write(1, 0, max(offset - 5, 0), (offset, offset, ACKNOWLEDGED, 1), complete=5)
        state.read(1)
        state.read(0)
        state.initialize(2, 600)
        state.read(2)
        note_records(peer, topic)

    both(script, allowed=OWN_WORDS)


def test_every_version_of_write_and_summary(both: Both, topic: str) -> None:
    def write(peer: Peer, version: int) -> None:
        state = state_of(peer, f"{topic}-write-{version}")
        state.initialize(1, 0)
        state.write(1, 0, 3, (3, 5, ACKNOWLEDGED, 1), version=version, complete=3)
        state.summary()

    def summary(peer: Peer, version: int) -> None:
        state = state_of(peer, f"{topic}-summary-{version}")
        state.initialize(1, 2)
        state.write(1, 0, 3, (3, 5, ACKNOWLEDGED, 1), complete=3)
        state.summary(version)

    both.each_version(WriteShareGroupStateRequest, write)
    both.each_version(ReadShareGroupStateSummaryRequest, summary)
