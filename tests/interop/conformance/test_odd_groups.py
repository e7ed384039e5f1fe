"""Compares unusual requests of groups, transactions and share groups, which no client library sends."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.transaction.transaction import Producer
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
)
from protocol.types import uuid_to_text
from tests.group_requests import txn_offset_commit
from tests.interop.conformance.compare import Both
from tests.interop.conformance.grouping import LONG_MS, Groups, Member
from tests.interop.conformance.meant import ONE_TRANSACTION_TWICE
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.sharing import OWN_WORDS
from tests.interop.conformance.test_configs import GROUP, SET, alter_in_part
from tests.interop.conformance.test_doubled_in_groups import find_coordinators, offset_commit, offset_fetch
from tests.interop.conformance.test_share_groups import member_of
from tests.interop.conformance.test_share_state import state_of
from tests.interop.conformance.transacting import Transacting


@pytest.fixture(autouse=True)
def coordinators(both: Both) -> None:
    for peer in (both.pair.odradek, both.pair.apache):
        find_coordinators(peer)


def test_offsets_of_a_share_group(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        state_of(peer, topic)
        member = member_of(peer, f"{topic}-s")
        ids = {name: topic_id for topic_id, name in peer.names.items()}
        for version in both.pair.versions(OffsetFetchRequest):
            nothing: list[int] = []
            for named in ([(topic, [0])], [(topic, nothing)], [], [(f"{topic}-absent", [0, 9])]):
                peer.try_ask(offset_fetch(member.group, named, ids), version)
            if version >= 2:
                Groups(peer).fetch({member.group: None}, version)
            if version >= 9:
                for epoch in (-1, 0, 1, 9):
                    fields: dict[str, Any] = {"member_id": member.name, "member_epoch": epoch}
                    Groups(peer).fetch({member.group: {topic: [0]}}, version, ids=ids, **fields)
        for version in both.pair.versions(OffsetCommitRequest):
            peer.try_ask(offset_commit(member.group, [(topic, [0])], ids), version)
            peer.try_ask(offset_commit(member.group, [(topic, [0, 9])], ids), version)

    both(script, allowed=OWN_WORDS)


MEMBER_ID_REQUIRED = 79
KEYS = (":-1", ":-2147483648", ":2147483647", ":2147483648", ":+1", ":00", ":x", ":", "", ":0:0", ":٣", ": 0")


def test_coordinators_of_odd_keys(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        topic_id = uuid_to_text(state_of(peer, topic).topic_id)
        for version in both.pair.versions(FindCoordinatorRequest):
            keys = [(2, f"g:{topic_id}{end}") for end in KEYS]
            keys += [
                (2, key)
                for key in (f":{topic_id}:0", f" :{topic_id}:0", f"\0:{topic_id}:0", "g:short:0", f"a:b:{topic_id}:0")
            ]
            keys += [(2, f"g:{'A' * 22}:0"), (2, f"g:{'!' * 22}:0"), (2, f"g:{topic_id}==:0"), (2, f"g:{topic_id}A:0")]
            keys += [(kind, key) for kind in (-1, 0, 1, 3, 127) for key in ("", "g")]
            for kind, key in keys:
                peer.try_ask(FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key]), version)
            peer.try_ask(FindCoordinatorRequest(key="g", key_type=0, coordinator_keys=[]), version)
            peer.try_ask(FindCoordinatorRequest(key="g", key_type=0, coordinator_keys=["g", "g"]), version)

    both(script, allowed=OWN_WORDS)


def test_offsets_of_a_transaction_that_is_another_s(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        txn = Transacting(peer, topic)
        txn.add_offsets()
        member = Member(peer, txn.group).stable()
        right = txn.producer
        producers = (
            right,
            Producer(right.producer_id, right.epoch + 1),
            Producer(right.producer_id, -1),
            Producer(-1, -1),
            Producer(right.producer_id + 777, 0),
        )
        for version in both.pair.versions(TxnOffsetCommitRequest):
            for name in (txn.name, "another", ""):
                for producer in producers:
                    for group in (txn.group, "", f"{topic}-absent"):
                        for generation, member_id in ((-1, ""), (9, ""), (1, member.member_id), (1, "nobody")):
                            request = txn_offset_commit(
                                group, name, producer, {topic: {0: 1}}, metadata="m",
                                generation_id_or_member_epoch=generation, member_id=member_id,
                            )  # fmt: skip
                            peer.try_ask(request, version)
        member.close()
        txn.end()

    both(script, allowed=OWN_WORDS)


def test_commits_of_strangers(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        peer.create(topic)
        ids = {name: topic_id for topic_id, name in peer.names.items()}
        member = Member(peer, f"{topic}-g").stable()
        stranger = Member(peer, f"{topic}-g")
        stranger.member_id, stranger.generation = "nobody", 1
        late = Member(peer, f"{topic}-g")
        late.member_id, late.generation = member.member_id, 7
        for version in both.pair.versions(OffsetCommitRequest):
            for one in (stranger, late, None):
                commits: list[dict[str, dict[int, int]]] = [
                    {topic: {0: 1}},
                    {f"{topic}-absent": {0: 1}},
                    {topic: {9: 1}},
                    {topic: {0: 1, 9: 1}},
                    {},
                    {topic: {}},
                ]
                for topics in commits:
                    for group in (f"{topic}-g", f"{topic}-none", ""):
                        Groups(peer).commit(group, topics, version, member=one, ids=ids)
        member.close()

    both(script, allowed=OWN_WORDS)


def test_classic_members_of_a_consumer_group(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        peer.create(topic)
        peer.wait_for_metadata()
        group = f"{topic}-g"
        # Otherwise a generation would depend on the pace: assignments are made once in a second.
        alter_in_part(peer, 1, (GROUP, group, [("consumer.assignment.interval.ms", SET, "0")]))
        beat = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=LONG_MS,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
        peer.try_ask(beat, 0)
        for version in range(10):
            for member_id in ("nobody", "m"):
                for strategies in (("range",), (), ("",), ("roundrobin",)):
                    stranger = Member(peer, group)
                    stranger.join(version, member_id=member_id, strategies=strategies)
                    stranger.close()
                stranger = Member(peer, group)
                stranger.join(version, member_id=member_id, protocol_type="connect")
                stranger.close()

    both(script, allowed=OWN_WORDS)


def test_protocols_without_a_name(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        for version in range(10):
            member = Member(peer, f"{topic}-{version}")
            member.enter(version, strategies=("",))
            member.sync(5, protocol_name="", assignments={member.member_id: b"all"})
            Groups(peer).describe(f"{topic}-{version}")
            member.leave()
            member.close()

    both(script, allowed=OWN_WORDS)


BLANK = ("", " ", "\0", "\t", "\x1f", "\u00a0", "\u2003", "\u0085")


@pytest.mark.parametrize("blank", BLANK, ids=repr)
def test_what_is_an_empty_string_of_a_consumer(both: Both, topic: str, blank: str) -> None:
    def script(peer: Peer) -> None:
        peer.create(topic)
        peer.wait_for_metadata()
        fields: dict[str, Any] = {
            "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 5000, "subscribed_topic_names": [topic],
            "topic_partitions": [],
        }  # fmt: skip
        for version in (0, 1):
            for name in (
                "group_id",
                "member_id",
                "rack_id",
                "instance_id",
                "server_assignor",
                "subscribed_topic_names",
            ):
                if name == "member_id" and not blank and not version:
                    continue  # it is given one
                value = [blank] if name == "subscribed_topic_names" else blank
                heartbeat = {**fields, "group_id": f"{topic}-{name}-{version}", name: value}
                peer.try_ask(ConsumerGroupHeartbeatRequest(**heartbeat), version)

    both(script, allowed=OWN_WORDS)


def test_offsets_of_a_consumer_group_for_a_member(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        group, member = f"{topic}-members", "a-member"
        beat = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=0,
            rebalance_timeout_ms=5000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
        peer.try_ask(beat, 1)
        for version in (9, 10):
            for member_id in (None, "", member, "another"):
                for epoch in (-1, 0, 1, 7):
                    Groups(peer).fetch({group: None}, version, member_id=member_id, member_epoch=epoch)

    both(script)


def test_one_transactional_id_twice(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        txn = Transacting(peer, topic)
        other = Producer(txn.producer.producer_id, txn.producer.epoch + 1)
        for version in (4, 5):
            for verify in (False, True):
                for first, second in (([0], [1]), ([0], [9]), ([9], [0]), ([], [0]), ([0], [])):
                    for one, two in ((txn.producer, txn.producer), (other, txn.producer), (txn.producer, other)):
                        requested = [
                            AddPartitionsToTxnTransaction(
                                transactional_id=txn.name,
                                producer_id=producer.producer_id,
                                producer_epoch=producer.epoch,
                                verify_only=verify,
                                topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions)],
                            )
                            for producer, partitions in ((one, first), (two, second))
                        ]
                        peer.try_ask(AddPartitionsToTxnRequest(transactions=requested), version)
            txn.end(version=4)

    both(script, allowed=ONE_TRANSACTION_TWICE)


def test_groups_that_commits_make(both: Both, topic: str) -> None:
    def script(peer: Peer) -> None:
        txn = Transacting(peer, topic)
        groups = Groups(peer)

        def look(group: str) -> None:
            groups.list(group)
            groups.describe(group)
            groups.fetch({group: None})

        groups.commit(f"{topic}-large", {topic: {0: 1}}, metadata="x" * 5000)
        look(f"{topic}-large")
        groups.commit(f"{topic}-absent", {f"{topic}-absent": {0: 1}})
        look(f"{topic}-absent")
        groups.commit(f"{topic}-nothing", {})
        look(f"{topic}-nothing")
        for committed in (True, False):
            group = f"{topic}-{committed}"
            txn.commit_offset(3, group=group)
            look(group)
            txn.end(committed=committed)
            look(group)
            groups.delete(group)
            look(group)
        txn.commit_offset(3, group=f"{topic}-fenced", producer=Producer(txn.producer.producer_id, 77))
        look(f"{topic}-fenced")
        txn.commit_offset(3, group=f"{topic}-other", name="another", version=3)
        look(f"{topic}-other")
        txn.commit_offset(3, group=f"{topic}-stale", generation=7)
        look(f"{topic}-stale")
        groups.delete_offsets(f"{topic}-deleted", {topic: [0]})
        look(f"{topic}-deleted")

    both(script)


def test_a_member_that_was_given_an_id_says_it_is_another_instance(both: Both, topic: str) -> None:
    """Member ids are assigned to members without an instance id. Kafka fails for the other kind, and names no
    member."""

    def script(peer: Peer) -> None:
        for version in (5, 7, 9):
            member = Member(peer, f"{topic}-{version}")
            assert member.join(version).error_code == MEMBER_ID_REQUIRED
            member.join(version, instance_id="an-instance")

    both(script)
