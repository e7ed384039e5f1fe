"""Compares unusual requests of share groups, which no client library sends, with Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from protocol.messages.share_fetch import ShareFetchRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.interop.conformance.compare import Allowed, Both
from tests.interop.conformance.grouping import Groups
from tests.interop.conformance.meant import NOTHING_TO_TELL, SHARE_GROUP_WITHOUT_NAME
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.sharing import OWN_WORDS, ShareMember, alter_offsets, describe, tell_offsets
from tests.interop.conformance.test_doubled_in_groups import find_coordinators
from tests.interop.conformance.test_share_groups import NO_FETCH, member_of
from tests.interop.conformance.test_share_state import state_of

NO_TOPIC = b"\x01" * 16


@pytest.fixture(autouse=True)
def coordinators(both: Both) -> None:
    for peer in (both.pair.odradek, both.pair.apache):
        find_coordinators(peer)


BLANK = ("", " ", "\0", "\t", "\x1f", "\u00a0", "\u2003", "\u0085")
JOINED = (
    Allowed(
        r"ShareGroupHeartbeatRequest .*\.(member_epoch|assignment\..*)",
        "who joins is answered once it has partitions; Apache Kafka tells of them five seconds later",
    ),
)


def test_a_share_group_of_nothing_is_made(both: Both, topic: str) -> None:
    def listed(peer: Peer, group: str) -> None:
        request = ListGroupsRequest(states_filter=[], types_filter=["share"])
        answer = peer.quietly(request, 5)
        assert isinstance(answer, ListGroupsResponse)
        answer.groups = [listed_group for listed_group in answer.groups if listed_group.group_id == group]
        peer.note(request, 5, answer)

    def script(peer: Peer) -> None:
        state_of(peer, topic)
        wishes: dict[str, dict[str, dict[int, int]]] = {
            "none": {},
            "no-partition": {topic: {}},
            "absent": {f"{topic}-absent": {0: 3}},
            "not-there": {topic: {9: 3}},
        }
        for name, wish in wishes.items():
            group = f"{topic}-{name}"
            alter_offsets(peer, group, wish)
            describe(peer, group)
            listed(peer, group)
            tell_offsets(peer, 1, group, None)
            alter_offsets(peer, group, wish)
            Groups(peer).delete(group)
            describe(peer, group)

    both(script, allowed=OWN_WORDS)


@pytest.mark.parametrize("group", ["", " ", "\0"])
def test_a_share_group_without_a_name(both: Both, topic: str, group: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 3)
        for version in both.pair.versions(ShareFetchRequest):
            for epoch in (0, 1, -1):
                member.fetch(group_id=group, share_session_epoch=epoch, version=version, max_wait_ms=0)
        for version in both.pair.versions(ShareAcknowledgeRequest):
            for epoch in (0, 1, -1):
                member.acknowledge((0, 1, [1]), group_id=group, share_session_epoch=epoch, version=version)
        for version in (0, 1):
            for topics in (None, {}, {topic: [0]}, {f"{topic}-absent": [0]}):
                tell_offsets(peer, version, group, topics)
        alter_offsets(peer, group, {topic: {0: 1}})
        describe(peer, group)

    both(script, allowed=(*OWN_WORDS, *NOTHING_TO_TELL, *SHARE_GROUP_WITHOUT_NAME))


@pytest.mark.parametrize("member_id", ["", " ", "x" * 36, "x" * 37])
def test_a_share_member_without_a_name(both: Both, topic: str, member_id: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 3)
        for version in both.pair.versions(ShareFetchRequest):
            for epoch in (0, 1, 5, -1, -2):
                member.fetch(member_id=member_id, share_session_epoch=epoch, version=version, **NO_FETCH)
        for version in both.pair.versions(ShareAcknowledgeRequest):
            for epoch in (0, 1, 5, -1, -2):
                member.acknowledge((0, 1, [1]), member_id=member_id, share_session_epoch=epoch, version=version)

    both(script, allowed=OWN_WORDS)


def test_errors_of_a_share_fetch(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 3)
        for version in both.pair.versions(ShareFetchRequest):
            lost = ShareMember(peer, topic, member.topic_id, f"lost-{version}")
            lost.fetch(index=9, version=version, max_wait_ms=0)
            lost.fetch(index=9, version=version, max_wait_ms=0, named=True)
            one = ShareMember(peer, topic, member.topic_id, f"member-{version}")
            one.fetch((0, 1, [1]), version=version, **NO_FETCH)
            one.fetch((5, 1, [1]), version=version, **NO_FETCH)
            one.fetch((0, 1, [7]), version=version, **NO_FETCH, share_session_epoch=77)
            one.acknowledge((0, 1, [1]), index=9, version=version)
            one.acknowledge((0, 1, [1]), topic_id=NO_TOPIC, version=version)
            one.acknowledge((0, 1, [9]), version=version)
            one.acknowledge((70, 71, [1]), version=version)
            one.acknowledge((0, 1, [1]), share_session_epoch=88, version=version)

    both(script, allowed=OWN_WORDS)


def test_texts_of_share_state(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        state = state_of(peer, topic)
        for index in (0, 9, -1):
            state.partition = index
            state.write(5, 0, 0)
            state.initialize(3, 0)
            state.initialize(2, 0)
            state.write(1, 0, 0)
            state.read(4)
            state.read(2)
            state.write(3, 1, 0)
            state.summary()
            state.delete()

    both(script, allowed=OWN_WORDS)


@pytest.mark.parametrize("blank", BLANK, ids=repr)
def test_what_is_an_empty_string_of_a_share_member(both: Both, topic: str, blank: str) -> None:
    def script(peer: Peer) -> None:
        peer.create(topic)
        peer.wait_for_metadata()
        fields: dict[str, Any] = {
            "member_id": "m",
            "member_epoch": 0,
            "rack_id": None,
            "subscribed_topic_names": [topic],
        }
        for name, value in (("member_id", blank), ("rack_id", blank), ("subscribed_topic_names", [blank])):
            heartbeat = {**fields, "group_id": f"{topic}-{name}", name: value}
            peer.try_ask(ShareGroupHeartbeatRequest(**heartbeat), 1)
        peer.try_ask(ShareGroupHeartbeatRequest(**fields, group_id=blank), 1)
        peer.try_ask(ShareGroupHeartbeatRequest(**{**fields, "member_epoch": -1}, group_id=blank), 1)

    both(script, allowed=(*OWN_WORDS, *JOINED))


@pytest.mark.parametrize("length", [36, 37])
@pytest.mark.parametrize("epoch", [0, -1, 1])
def test_member_ids_have_a_greatest_length(both: Both, topic: str, length: int, epoch: int) -> None:
    def script(peer: Peer) -> None:
        peer.create(topic)
        peer.wait_for_metadata()
        share = ShareGroupHeartbeatRequest(
            group_id=f"{topic}-s", member_id="x" * length, member_epoch=epoch, subscribed_topic_names=[topic]
        )
        peer.try_ask(share, 1)
        for version in (0, 1):
            consumer = ConsumerGroupHeartbeatRequest(
                group_id=f"{topic}-c",
                member_id="x" * length,
                member_epoch=epoch,
                rebalance_timeout_ms=5000,
                subscribed_topic_names=[topic],
                topic_partitions=[],
            )
            peer.try_ask(consumer, version)

    both(script, allowed=(*OWN_WORDS, *JOINED))


def test_no_group_at_all(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        member = member_of(peer, topic, 3)
        for version in both.pair.versions(ShareFetchRequest):
            for epoch in (0, 1, -1):
                member.fetch(group_id=None, share_session_epoch=epoch, version=version, max_wait_ms=0)
                member.fetch(member_id=None, share_session_epoch=epoch, version=version, max_wait_ms=0)
        for version in both.pair.versions(ShareAcknowledgeRequest):
            for epoch in (0, 1, -1):
                member.acknowledge((0, 1, [1]), group_id=None, share_session_epoch=epoch, version=version)
                member.acknowledge((0, 1, [1]), member_id=None, share_session_epoch=epoch, version=version)

    both(script, allowed=OWN_WORDS)
