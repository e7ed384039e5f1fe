"""Compares classic groups, offsets and their administration with Apache Kafka: every version, every wrong step."""

from __future__ import annotations

import time

import pytest

from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.sync_group import SyncGroupRequest
from tests.interop.conformance.compare import Allowed, Both
from tests.interop.conformance.grouping import FIRST_TOPIC_ID, GROUP, Groups, Member
from tests.interop.conformance.peers import Peer

SOON_S = 0.3
"""Time within which a request on another connection has nearly always been handled."""

IN_OWN_WORDS = (
    Allowed(r"FindCoordinatorRequest v[123] \.error_message", "errors are told in the project's own words"),
    Allowed(
        r"FindCoordinatorRequest v[456] \.coordinators\[\d\]\.error_message",
        "as above",
        ours=ErrorCode.INVALID_REQUEST.message,
    ),
)

NOBODY = "nobody-00000000-0000-0000-0000-000000000000"


@pytest.fixture(autouse=True)
def coordinator(both: Both) -> None:
    for peer in (both.pair.odradek, both.pair.apache):
        peer.find_coordinator("group", GROUP)
        peer.wait_for(
            HeartbeatRequest(group_id="none", generation_id=1, member_id="x"), 4, lambda a: a.error_code == 25
        )


def test_a_coordinator_is_found(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        for kind in (0, 1):
            peer.find_coordinator("key", kind)
        keys = {"coordinator_keys": ["one", "two", ""]} if version >= 4 else {"key": "one"}
        for key_type in (0, 1):
            peer.try_ask(FindCoordinatorRequest(key_type=key_type, **keys), version)
        if version >= 1:
            peer.try_ask(FindCoordinatorRequest(key_type=9, **keys), version)
            peer.try_ask(FindCoordinatorRequest(key_type=2, **keys), version)

    both.each_version(FindCoordinatorRequest, script, allowed=IN_OWN_WORDS)


def test_one_member_joins_syncs_and_leaves(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        member = Member(peer, f"{topic}-{version}")
        member.enter(version)
        member.sync(assignments={member.member_id: b"everything"})
        member.heartbeat()
        member.join(version)
        member.heartbeat()
        member.sync(assignments={member.member_id: b"everything"})
        member.leave()
        member.heartbeat()
        member.close()

    both.each_version(JoinGroupRequest, script)


def test_joins_that_are_refused(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        stable = Member(peer, f"{topic}-{version}").stable()
        member = Member(peer, stable.group)
        member.join(version, member_id=NOBODY)
        member.join(version, session_ms=1)
        member.join(version, session_ms=2_000_000)
        member.join(version, strategies=("sticky",))
        member.join(version, strategies=())
        member.join(version, protocol_type="connect")
        member.join(version, protocol_type="")
        nameless = Member(peer, "")
        nameless.join(version)
        absent = Member(peer, f"{topic}-{version}-absent")
        absent.join(version, member_id=NOBODY)
        absent.join(version, strategies=())
        for member_of_group in (stable, member, nameless, absent):
            member_of_group.close()

    both.each_version(JoinGroupRequest, script)


def test_syncs_that_are_refused(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        member = Member(peer, f"{topic}-{version}")
        member.sync(version, generation=1, member_id=NOBODY)
        member.stable()
        member.sync(version)
        member.sync(version, generation=7)
        member.sync(version, generation=-1)
        member.sync(version, member_id=NOBODY)
        member.sync(version, member_id="")
        member.sync(version, protocol_type="connect")
        member.sync(version, protocol_name="sticky")
        if version >= 3:
            member.sync(version, instance_id="unknown")
        if version >= 5:
            member.sync(version, protocol_type=None)
            member.sync(version, protocol_name=None)
        Member(peer, "").sync(version, generation=1, member_id="x")
        member.close()

    both.each_version(SyncGroupRequest, script)


def test_heartbeats(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        member = Member(peer, f"{topic}-{version}")
        member.heartbeat(version, generation=1, member_id=NOBODY)
        member.enter()
        member.heartbeat(version)
        member.sync(assignments={member.member_id: b""})
        member.heartbeat(version)
        member.heartbeat(version, generation=0)
        member.heartbeat(version, generation=2)
        member.heartbeat(version, member_id=NOBODY)
        if version >= 3:
            member.heartbeat(version, instance_id="unknown")
        Member(peer, "").heartbeat(version, generation=1, member_id="x")
        other = Member(peer, member.group)
        other.start_join(3)
        Groups(peer).wait_while("Stable", member.group)
        member.heartbeat(version)
        member.close()
        other.close()

    both.each_version(HeartbeatRequest, script)


def test_leaving(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        member = Member(peer, f"{topic}-{version}")
        member.leave(version, MemberIdentity(member_id=NOBODY))
        member.stable()
        member.leave(version, MemberIdentity(member_id=NOBODY))
        if version >= 3:
            member.leave(
                version,
                MemberIdentity(member_id="", group_instance_id="unknown"),
                MemberIdentity(member_id=""),
                MemberIdentity(member_id=member.member_id, group_instance_id="unknown"),
            )
        pending = Member(peer, member.group)
        pending.join(9)
        pending.leave(version)
        member.leave(version)
        member.leave(version)
        Member(peer, "").leave(version, MemberIdentity(member_id="x"))
        member.close()
        pending.close()

    both.each_version(LeaveGroupRequest, script)


def test_a_rebalance_of_two(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        first = Member(peer, topic).stable()
        second = Member(peer, topic)
        second.join()
        second.start_join()
        Groups(peer).wait_while("Stable", topic)
        first.heartbeat()
        Groups(peer).describe(topic)
        first.join()
        second.take()
        first.heartbeat()
        Groups(peer).commit(topic, {}, member=first)
        second.start_sync()
        # Nothing tells from outside that the sync waits; the answers are the same if it does not yet.
        time.sleep(SOON_S)
        first.sync(assignments={first.member_id: b"one", second.member_id: b"two"})
        second.take()
        first.sync()
        Groups(peer).describe(topic, operations=True)
        second.join()  # nothing new
        second.leave()
        first.heartbeat()
        first.join()
        first.close()
        second.close()

    both(script)


def test_static_members(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        groups = Groups(peer)
        first = Member(peer, topic).stable(instance_id="one")
        groups.describe(topic)
        again = Member(peer, topic)
        again.join(9, instance_id="one")
        first.heartbeat(instance_id="one")
        first.sync(instance_id="one")
        first.join(9, instance_id="one")
        first.heartbeat()
        older = Member(peer, topic)
        older.join(8, instance_id="one")
        older.sync(instance_id="one")
        older.heartbeat(instance_id="one")
        older.leave(5, MemberIdentity(member_id="", group_instance_id="one"))
        groups.describe(topic)
        for member_of_group in (first, again, older):
            member_of_group.close()

    both(script)


# Offsets


def test_commits_of_nobody_and_of_members(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        groups, name = Groups(peer), f"{topic}-{version}"
        ids = {name: peer.create(name, 2), "absent": bytes(15) + b"\7"}
        peer.wait_for_metadata()
        group = f"{name}-simple"
        by_id = version >= FIRST_TOPIC_ID
        groups.commit(group, {name: {0: 5, 1: 7}}, version, metadata="some", ids=ids)
        groups.commit(group, {name: {0: 6}}, version, metadata=None, ids=ids)
        groups.commit(group, {name: {0: 6, 9: 1}, "absent": {0: 1}}, version, ids=ids)
        groups.commit(group, {name: {0: -5}}, version, ids=ids)
        groups.commit(group, {name: {0: 5}}, version, metadata="x" * 4097, ids=ids)
        groups.commit(group, {name: {0: 5}}, version, metadata="x" * 4096, ids=ids)
        groups.commit(group, {}, version)
        groups.commit(group, {name: {0: 1}}, version, generation=3, ids=ids)
        groups.commit(f"{name}-absent", {name: {0: 1}}, version, generation=3, ids=ids)
        groups.commit("", {name: {0: 1}}, version, ids=ids)
        member = Member(peer, f"{name}-members").stable()
        groups.commit(member.group, {name: {0: 5}}, version, member=member, ids=ids)
        groups.commit(member.group, {name: {0: 5}}, version, member=member, generation=7, ids=ids)
        groups.commit(member.group, {name: {0: 5}}, version, ids=ids)
        groups.fetch({group: None}, 10 if by_id else 9)
        member.leave()
        groups.commit(member.group, {name: {0: 9}}, version, ids=ids)
        groups.fetch({member.group: None}, 10 if by_id else 9)
        member.close()

    both.each_version(OffsetCommitRequest, script)


def test_fetching_offsets(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        groups, name = Groups(peer), f"{topic}-{version}"
        ids = {name: peer.create(name, 2), "absent": bytes(15) + b"\7"}
        peer.wait_for_metadata()
        groups.commit(name, {name: {0: 5}}, 9, metadata="said")
        stable = {"stable": True} if version >= 7 else {}
        groups.fetch({name: {name: [0, 1]}}, version, ids=ids, **stable)
        groups.fetch({name: {name: [0, 7], "absent": [0, 1]}}, version, ids=ids)
        groups.fetch({name: {}}, version)
        groups.fetch({f"{name}-absent": {name: [0]}}, version, ids=ids)
        groups.fetch({"": {name: [0]}}, version, ids=ids)
        if version >= 2:
            groups.fetch({name: None}, version)
            groups.fetch({f"{name}-absent": None}, version)
        if version >= 8:
            groups.fetch({name: None, f"{name}-absent": None, f"{name}-other": {name: [1]}}, version, ids=ids)
        if version >= 9:
            groups.fetch({name: {name: [0]}}, version, ids=ids, member_id="someone", member_epoch=3)

    both.each_version(OffsetFetchRequest, script)


def test_deleting_offsets(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        groups = Groups(peer)
        for name in (topic, f"{topic}-other"):
            peer.create(name, 2)
        peer.wait_for_metadata()
        groups.delete_offsets(topic, {topic: [0]})
        groups.commit(topic, {topic: {0: 5, 1: 6}, f"{topic}-other": {0: 7}})
        groups.delete_offsets(topic, {topic: [0, 0, 9], "absent": [0]})
        groups.fetch({topic: None})
        groups.delete_offsets("", {topic: [0]})
        member = Member(peer, f"{topic}-members").stable(topics=[topic])
        groups.commit(member.group, {topic: {0: 5}, f"{topic}-other": {0: 7}}, member=member)
        groups.delete_offsets(member.group, {topic: [0], f"{topic}-other": [0, 1]})
        groups.fetch({member.group: None})
        connect = Member(peer, f"{topic}-connect")
        connect.enter(protocol_type="connect")
        groups.delete_offsets(connect.group, {topic: [0]})
        member.close()
        connect.close()

    both(script)


# Administration


def test_describing_groups(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        groups, name = Groups(peer), f"{topic}-{version}"
        groups.describe(name, "", version=version, operations=version >= 3)
        member = Member(peer, name)
        member.join(9)
        groups.wait_while("Dead", name)
        groups.describe(name, version=version)
        member.join(9)
        groups.describe(name, version=version)
        member.sync(assignments={member.member_id: b"everything"})
        groups.describe(name, name, version=version, operations=version >= 3)
        member.leave()
        groups.describe(name, version=version)
        member.close()

    both.each_version(DescribeGroupsRequest, script)


def test_deleting_groups(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        groups, name = Groups(peer), f"{topic}-{version}"
        peer.create(name)
        peer.wait_for_metadata()
        member = Member(peer, f"{name}-members").stable()
        groups.commit(name, {name: {0: 5}})
        groups.delete(name, name, member.group, "", f"{name}-absent", version=version)
        groups.delete(name, version=version)
        groups.fetch({name: None})
        member.close()

    both.each_version(DeleteGroupsRequest, script)


def test_listing_groups(both: Both, topic: str) -> None:
    def script(peer: Peer, version: int) -> None:
        groups, name = Groups(peer), f"{topic}-{version}"
        member = Member(peer, name).stable()
        groups.list(name, version)
        if version >= 4:
            groups.list(name, version, states=["stable"])
            groups.list(name, version, states=["Nonsense"])
        if version >= 5:
            groups.list(name, version, states=["Stable"], types=["CLASSIC"])
            groups.list(name, version, types=["share"])
            groups.list(name, version, types=["nonsense"])
        member.leave()
        if version >= 4:
            groups.list(name, version, states=["Stable", "PreparingRebalance"])
        member.close()

    both.each_version(ListGroupsRequest, script)
