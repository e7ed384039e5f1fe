"""Compares share groups, as members and administrators see them, with Apache Kafka: every request, every wrong step."""

from __future__ import annotations

import pytest

from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from protocol.messages.share_fetch import ForgottenTopic, ShareFetchRequest
from tests.interop.conformance.compare import Allowed, Both
from tests.interop.conformance.grouping import GROUP, Groups
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.sharing import (
    LOADED_WITHIN_MS,
    OWN_WORDS,
    ShareMember,
    alter_offsets,
    append,
    configure,
    delete_offsets,
    describe,
    note_records,
    tell_offsets,
)

GAP, ACCEPT, RELEASE, REJECT, RENEW = 0, 1, 2, 3, 4
RECORD_LIMIT = 1
LEAVE = -1
NO_TOPIC = b"\x01" * 16
UNKNOWN = (
    Allowed(
        r"ShareFetchRequest v2 \.(error_code|acquisition_lock_timeout_ms|responses)",
        "Apache Kafka fails over groups without a name and topics that are not there (UNKNOWN_SERVER_ERROR)",
        where_so=lambda ours, theirs: (
            ours in (42, 0, 30_000, []) or "this broker has no topic with this id" in str(ours)
        ),
    ),
)
MANY = 3000
"""More records than group.share.partition.max.record.locks, in one batch."""

NO_FETCH = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}


@pytest.fixture(autouse=True)
def coordinator(both: Both) -> None:
    for peer in (both.pair.odradek, both.pair.apache):
        peer.find_coordinator("group", GROUP)
        peer.wait_for(
            HeartbeatRequest(group_id="none", generation_id=1, member_id="x"), 4, lambda a: a.error_code == 25
        )


def member_of(peer: Peer, group: str, *counts: int, partitions: int = 1, **configs: str) -> ShareMember:
    """Returns a member with partition 0 of a topic with its group's name, which begins with batches of these numbers of
    records."""
    topic_id = peer.create(group, partitions)
    configure(peer, group, share_auto_offset_reset="earliest", **configs)
    member = ShareMember(peer, group, topic_id)
    member.join(group)
    append(peer, group, counts)
    return member


# Membership.


def test_a_member_joins_and_leaves(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic)
        member.beat()
        describe(peer, topic)
        member.beat(topic)
        other = ShareMember(peer, topic, member.topic_id, "member-2")
        other.join(topic)
        describe(peer, topic, operations=True)
        member.beat(epoch=LEAVE)
        other.beat(epoch=LEAVE)
        describe(peer, topic)
        Groups(peer).list(topic, types=["share"])
        peer.try_ask(DeleteGroupsRequest(groups_names=[topic]), 2)
        describe(peer, topic, "", f"{topic}-nobody")

    both(script, allowed=OWN_WORDS)


def test_heartbeats_that_are_refused(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic)
        member.beat(epoch=99)
        member.beat(topic, member_id="")
        member.beat(topic, group_id="")
        member.beat(epoch=0)
        member.beat(epoch=-2)
        member.beat(topic, epoch=5, member_id="nobody")
        member.beat(epoch=LEAVE, member_id="nobody")
        member.beat(topic, group_id=f"{topic}-nobody", epoch=3)
        member.beat(topic, epoch=0, rack_id="")
        member.beat(topic, epoch=0, group_id=f"{topic}-other", subscribed_topic_names=[])
        member.beat("not-there")
        describe(peer, topic)

    both(script, allowed=OWN_WORDS)


# Fetching.


def test_a_session_from_its_beginning_to_its_end(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        group = f"{topic}-{version}"
        member = member_of(peer, group, 3, 2, 5)
        member.fetch(version=version)
        member.fetch((0, 4, [ACCEPT]), (5, 7, [ACCEPT, RELEASE, REJECT]), (8, 9, [RELEASE]), version=version)
        member.fetch((6, 6, [ACCEPT]), version=version, max_wait_ms=0)
        member.fetch(version=version, max_wait_ms=0)
        member.fetch((8, 9, [ACCEPT]), version=version, share_session_epoch=-1)
        tell_offsets(peer, 1, group, None)
        member.fetch(version=version)

    both.each_version(ShareFetchRequest, script, allowed=OWN_WORDS)


def test_fetches_that_are_refused(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 3)
        member.fetch(share_session_epoch=1)
        member.fetch(share_session_epoch=-1)
        member.fetch((0, 0, [ACCEPT]), share_session_epoch=0)
        member.fetch(share_session_epoch=0, member_id="")
        member.fetch(share_session_epoch=0, member_id=None)
        member.fetch(share_session_epoch=0, member_id="x" * 37)
        member.fetch(share_session_epoch=0, group_id=None)
        member.fetch(share_session_epoch=0, group_id="", max_wait_ms=0)
        member.fetch(share_session_epoch=0, topic_id=NO_TOPIC, max_wait_ms=0)
        member.fetch(share_session_epoch=0, index=5, max_wait_ms=0)
        member.fetch()
        for epoch in (0x7FFFFFFF, -2, 5, 3):
            member.fetch(share_session_epoch=epoch)
        member.fetch(topic_id=NO_TOPIC, named=True, max_wait_ms=0)
        member.fetch(max_wait_ms=0)
        forgotten = ForgottenTopic(topic_id=NO_TOPIC, partitions=[0])
        member.fetch(max_wait_ms=0, forgotten_topics_data=[forgotten])
        member.fetch(max_wait_ms=0)

    both(script, allowed=(*OWN_WORDS, *UNKNOWN))


@pytest.mark.parametrize("mode", [0, RECORD_LIMIT])
def test_what_is_acquired(both: Both, topic: str, mode: int) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 3, 2, 5, 1, 8, share_delivery_count_limit="5")
        member.fetch(share_acquire_mode=mode, max_wait_ms=LOADED_WITHIN_MS, max_records=2)
        for wish in ({"max_records": 4}, {"batch_size": 2}, {"max_bytes": 1}, {}):
            member.fetch(share_acquire_mode=mode, **{"max_wait_ms": 500, **wish})
        member.fetch((0, 18, [RELEASE]), share_acquire_mode=mode, **{**NO_FETCH, "max_wait_ms": 0})
        for wish in ({"max_records": 2}, {"max_records": 4}, {"batch_size": 2}, {"max_bytes": 1}, {}):
            member.fetch(share_acquire_mode=mode, **{"max_wait_ms": 500, **wish})
        member.fetch((0, 18, [RELEASE]), max_wait_ms=0, max_records=0)
        for _ in range(4):
            member.fetch(share_acquire_mode=mode, max_records=6, max_wait_ms=500)
        note_records(peer, topic)

    both(script, allowed=OWN_WORDS)


def test_a_batch_of_more_records_than_the_limit_is_acquired_whole_and_acknowledged_one_by_one(
    both: Both, topic: str
) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, MANY, 5)
        member.fetch(max_wait_ms=LOADED_WITHIN_MS)
        member.fetch((0, MANY - 1, [ACCEPT, RELEASE] * (MANY // 2)), **{**NO_FETCH, "max_wait_ms": 0})
        member.fetch(max_wait_ms=500)
        member.fetch((1, MANY - 1, [ACCEPT, GAP] * (MANY // 2 - 1) + [ACCEPT]), **{**NO_FETCH, "max_wait_ms": 0})
        member.fetch(max_wait_ms=500)

    both(script, allowed=OWN_WORDS)


# Acknowledging.

SAID = {
    "all": [((0, 9, [ACCEPT]),)],
    "each": [((0, 9, [ACCEPT, RELEASE, REJECT, ACCEPT, GAP, ACCEPT, RELEASE, RELEASE, ACCEPT, ACCEPT]),)],
    "halves": [((0, 4, [ACCEPT]), (5, 9, [RELEASE]))],
    "twice": [((0, 4, [ACCEPT]),), ((0, 4, [ACCEPT]),)],
    "twice, of what is still held": [((3, 5, [ACCEPT]),), ((3, 5, [ACCEPT]),), ((0, 9, [ACCEPT]),)],
    "out of order": [((5, 9, [ACCEPT]), (0, 4, [ACCEPT]))],
    "overlapping": [((0, 5, [ACCEPT]), (5, 9, [ACCEPT]))],
    "backwards": [((5, 3, [ACCEPT]),)],
    "negative": [((-1, 3, [ACCEPT]),)],
    "beyond": [((0, 12, [ACCEPT]),), ((10, 12, [ACCEPT]),)],
    "no type": [((0, 9, []),)],
    "too few types": [((0, 9, [ACCEPT, ACCEPT]),)],
    "too many types": [((0, 1, [ACCEPT, ACCEPT, ACCEPT]),)],
    "an unknown type": [((0, 9, [5]),)],
    "a negative type": [((0, 9, [-1]),)],
    "a renewal that is not said to be one": [((0, 9, [RENEW]),)],
    "released": [((0, 9, [RELEASE]),), ((0, 9, [ACCEPT]),)],
    "one right, one wrong": [((0, 2, [ACCEPT]), (11, 12, [ACCEPT])), ((0, 2, [ACCEPT]),)],
}


@pytest.mark.parametrize("requests", SAID.values(), ids=SAID)
def test_what_is_said_of_records(
    both: Both, topic: str, requests: list[tuple[tuple[int, int, list[int]], ...]]
) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 4, 6)
        member.fetch_quietly()
        for acknowledged in requests:
            member.acknowledge(*acknowledged)
        member.fetch(max_wait_ms=300)
        member.acknowledge(share_session_epoch=LEAVE)
        tell_offsets(peer, 1, topic, {topic: [0]})
        note_records(peer, topic)

    both(script, allowed=OWN_WORDS)


@pytest.mark.parametrize("requests", SAID.values(), ids=SAID)
def test_what_is_said_with_a_fetch(
    both: Both, topic: str, requests: list[tuple[tuple[int, int, list[int]], ...]]
) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 4, 6)
        member.fetch_quietly()
        for acknowledged in requests:
            member.fetch(*acknowledged, max_wait_ms=100, max_records=0)
        member.fetch(max_wait_ms=300)

    both(script, allowed=OWN_WORDS)


def test_acknowledgements_that_are_refused(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 5)
        acknowledged = (0, 4, [ACCEPT])
        member.acknowledge(acknowledged, share_session_epoch=0)
        member.acknowledge(acknowledged, share_session_epoch=1)
        member.acknowledge(acknowledged, share_session_epoch=LEAVE)
        member.fetch_quietly()
        member.acknowledge(acknowledged, share_session_epoch=0)
        member.acknowledge(acknowledged, share_session_epoch=7)
        member.acknowledge(acknowledged, group_id=None, share_session_epoch=1)
        member.acknowledge(acknowledged, member_id="", share_session_epoch=1)
        member.acknowledge(acknowledged, member_id="nobody", share_session_epoch=1)
        member.acknowledge(acknowledged, index=3)
        member.acknowledge(acknowledged, topic_id=NO_TOPIC)
        member.acknowledge()
        other = ShareMember(peer, topic, member.topic_id, "member-2")
        other.fetch_quietly(max_wait_ms=0)
        other.acknowledge(acknowledged)
        member.acknowledge(acknowledged, share_session_epoch=LEAVE)
        member.acknowledge(acknowledged, share_session_epoch=LEAVE)

    both(script, allowed=OWN_WORDS)


def test_acknowledgements_of_nothing_and_twice(both: Both, topic: str) -> None:
    """An unknown topic id comes before contradictory batches. Partitions without acknowledgements are answered only
    beside others. For a partition that is named twice, the last entry counts."""

    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 5, partitions=2)
        member.fetch_quietly(topics=member.topics_of([(0, ()), (1, ())]))
        backwards, first, last = (4, 0, [ACCEPT]), (0, 1, [ACCEPT]), (2, 4, [RELEASE])
        member.acknowledge(backwards, topic_id=NO_TOPIC)
        member.acknowledge(backwards, index=3)
        member.acknowledge()
        beside, twice = [(0, (first,)), (1, ())], [(0, (first,)), (0, (last,))]
        for partitions in ([(0, ()), (1, ())], [(0, ()), (3, ())], beside, twice):
            member.acknowledge_each(partitions)
            note_records(peer, topic)
        member.fetch(topics=member.topics_of([(0, (first,)), (1, ()), (3, ())]))
        member.fetch(topics=member.topics_of([(0, ()), (1, ())]))

    both(script, allowed=OWN_WORDS)


def test_every_version_of_an_acknowledgement(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        member = member_of(peer, f"{topic}-{version}", 5)
        member.fetch_quietly()
        member.acknowledge((0, 4, [ACCEPT, RELEASE, REJECT, GAP, ACCEPT]), version=version)
        member.acknowledge((1, 1, [RENEW]), version=version)

    both.each_version(ShareAcknowledgeRequest, script, allowed=OWN_WORDS)


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_locks_are_renewed(both: Both, topic: str, enabled: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 5, share_renew_acknowledge_enable=enabled)
        member.fetch_quietly()
        member.acknowledge((0, 1, [RENEW]), is_renew_ack=True)
        member.acknowledge((0, 1, [RENEW, ACCEPT]), is_renew_ack=True)
        member.fetch((2, 3, [RENEW]), is_renew_ack=True, share_session_epoch=member.session_epoch)
        member.fetch((2, 3, [RENEW, REJECT]), is_renew_ack=True, **NO_FETCH)
        member.fetch((1, 1, [RENEW]), is_renew_ack=True, **NO_FETCH)
        member.acknowledge((0, 4, [ACCEPT]))
        note_records(peer, topic)

    both(script, allowed=OWN_WORDS)


# Offsets.


def test_offsets_are_told(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        group = f"{topic}-{version}"
        member = member_of(peer, group, 4, 6, partitions=2)
        tell_offsets(peer, version, group, {group: [0, 1]})
        member.fetch_quietly()
        member.fetch((0, 3, [ACCEPT]), (6, 7, [ACCEPT]), max_wait_ms=0, max_records=0)
        tell_offsets(peer, version, group, None)
        tell_offsets(peer, version, group, {group: [0, 1], "not-there": [0]})
        tell_offsets(peer, version, group, {})
        tell_offsets(peer, version, f"{group}-nobody", None)
        tell_offsets(peer, version, f"{group}-nobody", {group: [0]})
        tell_offsets(peer, version, "", None)

    both.each_version(DescribeShareGroupOffsetsRequest, script, allowed=OWN_WORDS)


def test_offsets_are_altered_and_deleted(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 4, 6)
        other_topic = f"{topic}-other"
        peer.create(other_topic)
        member.fetch_quietly()
        alter_offsets(peer, topic, {topic: {0: 2}})
        delete_offsets(peer, topic, topic)
        peer.try_ask(DeleteGroupsRequest(groups_names=[topic]), 2)
        member.fetch((0, 9, [ACCEPT]), share_session_epoch=LEAVE)
        member.beat(epoch=LEAVE)
        alter_offsets(peer, topic, {topic: {0: 2, 7: 1}, "not-there": {0: 0}, other_topic: {0: 3}})
        tell_offsets(peer, 1, topic, None)
        alter_offsets(peer, topic, {topic: {0: -5}})
        alter_offsets(peer, topic, {})
        alter_offsets(peer, f"{topic}-nobody", {topic: {0: 1}})
        alter_offsets(peer, "", {topic: {0: 1}})
        delete_offsets(peer, topic, topic, "not-there")
        delete_offsets(peer, topic, topic)
        delete_offsets(peer, topic)
        delete_offsets(peer, f"{topic}-nobody", topic)
        delete_offsets(peer, "", topic)
        tell_offsets(peer, 1, topic, None)
        peer.try_ask(DeleteGroupsRequest(groups_names=[topic]), 2)
        tell_offsets(peer, 1, topic, {topic: [0]})

    both(script, allowed=OWN_WORDS)
