"""Tests the known leader of a quorum after valid and invalid answers."""

from __future__ import annotations

from coordinator.cluster.quorum_state import QuorumState
from coordinator.quorum.leadership import Leadership, Location
from protocol.messages.fetch import NodeEndpoint

A, B, C = Location("a", 9093), Location("b", 9093), Location("c", 9093)
VOTERS = {1: A, 2: B, 3: C}


def led_by(leader_id: int = -1, epoch: int = 0) -> Leadership:
    return Leadership(QuorumState(leader_id, epoch), VOTERS, ())


def test_a_new_node_asks_each_voter_in_turn() -> None:
    unknown = led_by()
    assert [unknown.destination() for _ in range(4)] == [A, B, C, A]


def test_bootstrap_servers_are_asked_where_no_voter_is_known() -> None:
    unknown = Leadership(QuorumState(), {}, (B, C, B))
    assert [unknown.destination() for _ in range(3)] == [B, C, B]


def test_without_any_address_nobody_is_asked() -> None:
    assert Leadership(QuorumState(), {}, ()).destination() is None


def test_a_restart_begins_with_the_leader_that_it_knew() -> None:
    assert led_by(2, 5).destination() == B


def test_the_leader_is_asked_once_an_answer_names_it() -> None:
    leadership = led_by()
    assert leadership.names_leader(3, 7) is None
    assert (leadership.destination(), leadership.state) == (C, QuorumState(3, 7))


def test_an_earlier_epoch_changes_nothing() -> None:
    leadership = led_by(2, 5)
    assert leadership.names_leader(1, 4) is None
    assert leadership.state == QuorumState(2, 5)


def test_a_later_epoch_without_a_leader_sends_the_node_round() -> None:
    leadership = led_by(2, 5)
    assert leadership.names_leader(-1, 6) is None
    assert leadership.leader is None
    assert leadership.state == QuorumState(-1, 6)


def test_a_second_leader_in_one_epoch_is_not_believed() -> None:
    leadership = led_by(2, 5)
    assert leadership.names_leader(1, 5) == "names node 1 as the leader of epoch 5, but it is node 2"
    assert leadership.leader == B


def test_a_suspected_leader_is_asked_in_turn_until_somebody_names_one() -> None:
    leadership = led_by(2, 5)
    leadership.suspect()
    assert leadership.leader is None
    assert {leadership.destination() for _ in range(3)} == {A, B, C}
    leadership.names_leader(2, 5)
    assert leadership.leader == B


def test_an_answer_says_where_a_leader_listens_that_nobody_configured() -> None:
    leadership = led_by()
    leadership.locate([NodeEndpoint(node_id=9, host="new", port=19093)])
    leadership.names_leader(9, 1)
    assert leadership.leader == Location("new", 19093)


def test_an_address_that_cannot_be_is_left_out() -> None:
    leadership = led_by()
    wrong = [(-1, "x", 9093), (8, "", 9093), (8, "x", 0), (8, "x", 1 << 16), (8, "x", -5)]
    leadership.locate([NodeEndpoint(node_id=node_id, host=host, port=port) for node_id, host, port in wrong])
    leadership.names_leader(8, 1)
    assert leadership.leader is None
