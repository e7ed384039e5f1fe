"""Tests share sessions: the partitions that a request names, and the acknowledgement of records."""

from __future__ import annotations

from commands.shares.session import (
    ACCEPT,
    END_OF_SESSION,
    GAP,
    RELEASE,
    AcquiredRange,
    MemberShareSession,
    RangeAcknowledgement,
    SharePlace,
    acquired_ranges,
)
from protocol.messages.share_fetch import AcquiredRecords, LeaderIdAndEpoch, PartitionData, ShareFetchRequest
from protocol.records.batch import TimestampType
from protocol.records.building import build
from protocol.records.record import Record
from protocol.types import TopicPartition

TOPIC = bytes(range(16))
HERE, THERE = SharePlace(TOPIC, 0), SharePlace(TOPIC, 1)
ORDERS = TopicPartition("orders", 0)


def named(request: ShareFetchRequest) -> tuple[list[int], list[int]]:
    """Returns the partitions that a request adds to its session, and those that it removes."""
    added = [one.partition_index for topic in request.topics for one in topic.partitions]
    return added, [index for topic in request.forgotten_topics_data for index in topic.partitions]


def record(offset: int) -> Record:
    return Record(offset, 5, None, b"v")


def test_partitions_are_named_once_and_taken_out_when_they_go_to_others() -> None:
    session = MemberShareSession("g", "m")
    assert not session.is_open
    assert named(session.fetch({HERE, THERE}, None)) == ([0, 1], [])
    session.answered()
    assert session.is_open
    assert named(session.fetch({HERE, THERE}, None)) == ([], [])
    session.answered()
    assert named(session.fetch({THERE}, None)) == ([], [0])


def test_epochs_count_all_requests_of_a_session() -> None:
    session = MemberShareSession("g", "m")
    epochs = [session.fetch({HERE}, None).share_session_epoch]
    session.answered()
    epochs.append(session.acknowledge({HERE: [RangeAcknowledgement(0, [ACCEPT])]}).share_session_epoch)
    session.answered()
    epochs.append(session.fetch({HERE}, None).share_session_epoch)
    assert epochs == [0, 1, 2]
    assert session.acknowledge({}, is_last=True).share_session_epoch == END_OF_SESSION


def test_a_session_that_was_lost_begins_with_all_partitions() -> None:
    session = MemberShareSession("g", "m")
    session.fetch({HERE}, None)
    session.answered()
    session.begin_anew()
    request = session.fetch({HERE}, None)
    assert (request.share_session_epoch, *named(request)) == (0, [0], [])


def test_who_wants_two_records_locks_no_more() -> None:
    limited, unlimited = (MemberShareSession("g", "m").fetch({HERE}, limit) for limit in (2, None))
    assert (limited.max_records, limited.share_acquire_mode) == (2, 1)
    assert (unlimited.max_records, unlimited.share_acquire_mode) == (500, 0)


def test_records_that_others_have_are_not_shown_and_what_is_missing_is_a_gap() -> None:
    records = build([record(offset) for offset in range(3)])
    data = PartitionData(
        partition_index=0,
        error_code=0,
        acknowledge_error_code=0,
        current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=0),
        records=records,
        acquired_records=[AcquiredRecords(first_offset=1, last_offset=4, delivery_count=2)],
    )
    (acquired,) = acquired_ranges(data)
    assert [(one.record.offset, one.delivery_count) for one in acquired.printed(ORDERS)] == [(1, 2), (2, 2)]
    assert acquired.acknowledgements(ACCEPT, {1, 2}) == [ACCEPT, ACCEPT, GAP, GAP]


def test_what_was_not_printed_is_given_back() -> None:
    kind = TimestampType.CREATE_TIME
    acquired = AcquiredRange(5, 7, 1, {5: (record(5), kind), 6: (record(6), kind)})
    assert acquired.acknowledgements(ACCEPT, {5}) == [ACCEPT, RELEASE, GAP]
