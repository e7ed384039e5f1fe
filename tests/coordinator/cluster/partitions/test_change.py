"""Tests changes of a partition, with the cases of Apache Kafka's PartitionChangeBuilderTest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from coordinator.cluster.partitions.change import (
    Elected,
    Election,
    ElectionRules,
    PartitionTarget,
    change_partition,
    elect,
)
from coordinator.cluster.topics.topic import NO_LEADER, RECOVERED, RECOVERING, PartitionRegistration
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import NO_UUID, Uuid
from tests.coordinator.cluster.given import partition_change

TOPIC_ID = b"the-topic's-id--"
OLD, LATEST = 11, 30
"""metadata.version 3.5-IV2, and the newest."""


def directory(broker_id: int) -> Uuid:
    return bytes([broker_id]) * 16


def partition(replicas: Sequence[int], isr: Sequence[int], leader: int, **state: object) -> PartitionRegistration:
    directories = tuple(map(directory, replicas))
    made = PartitionRegistration(
        tuple(replicas), tuple(isr), leader, leader_epoch=100, partition_epoch=200, directories=directories
    )
    return made._replace(**state)  # type: ignore[arg-type]  # fields by their names


FOO = partition([2, 1, 3], [2, 1, 3], 1)
BAR = partition([1, 2, 3, 4], [1, 2, 3], 1, removing_replicas=(1,), adding_replicas=(4,))
BAZ = partition([2, 1, 3], [1, 3], 3)
OFFLINE = partition([2, 1, 3], [3], NO_LEADER)
OFFLINE_WITH_ELR = partition([2, 1, 3], [], NO_LEADER, elr=(3,), last_known_elr=(2,))


def rules(*up: int, **fields: object) -> ElectionRules:
    """Returns rules under which these brokers are active."""
    made = ElectionRules(is_acceptable=lambda broker_id: broker_id in up, metadata_version=LATEST, elr_enabled=True)
    return made._replace(**fields)  # type: ignore[arg-type]  # fields by their names


NOT_3 = (1, 2)
ALL = (1, 2, 3, 4)


def changed(before: PartitionRegistration, target: PartitionTarget, by: ElectionRules) -> PartitionChangeRecord | None:
    return change_partition(TOPIC_ID, 0, before, target, by)


@pytest.mark.parametrize(("election", "isr", "elected"), [
    (Election.PREFERRED, [2, 1, 3], Elected(2)),
    (Election.ONLINE, [2, 1, 3], Elected(1)),
    (Election.UNCLEAN, [2, 1, 3], Elected(1)),
    (Election.ONLINE, [1, 3], Elected(1)),
    (Election.UNCLEAN, [1, 3], Elected(1)),
    (Election.ONLINE, [3], Elected(NO_LEADER)),
    (Election.UNCLEAN, [3], Elected(2, unclean=True)),
])  # fmt: skip
def test_a_leader_that_is_in_sync_stays_unless_the_preferred_one_is_wanted(
    election: Election, isr: list[int], elected: Elected
) -> None:
    assert elect(FOO, isr, [], FOO.replicas, rules(*NOT_3, election=election)) == elected


@pytest.mark.parametrize("election", Election)
def test_a_preferred_leader_that_is_not_in_sync_is_not_elected(election: Election) -> None:
    assert elect(BAZ, BAZ.isr, [], BAZ.replicas, rules(1, 3, election=election)) == Elected(3)


def test_an_added_replica_is_elected_when_it_is_the_only_one_in_sync() -> None:
    assert elect(FOO, [4], [], [2, 1, 3, 4], rules(*ALL)) == Elected(4)


@pytest.mark.parametrize(("up", "election", "elected"), [
    ((1, 2, 3), Election.ONLINE, Elected(3)),
    ((1, 2, 3), Election.PREFERRED, Elected(3)),
    ((1, 2), Election.ONLINE, Elected(NO_LEADER)),
    ((1, 2), Election.UNCLEAN, Elected(2, unclean=True)),
])  # fmt: skip
def test_where_nobody_is_in_sync_an_eligible_replica_leads(
    up: tuple[int, ...], election: Election, elected: Elected
) -> None:
    before = OFFLINE_WITH_ELR
    assert elect(before, before.isr, before.elr, before.replicas, rules(*up, election=election)) == elected


@pytest.mark.parametrize(("last_known", "up", "elr_enabled", "elected"), [
    ((2,), (1, 2), True, Elected(2, unclean=True)),
    ((2,), (1,), True, Elected(NO_LEADER)),  # it is fenced (KAFKA-19522)
    ((2,), (1, 2), False, Elected(NO_LEADER)),
    ((2, 1), (1, 2), True, Elected(NO_LEADER)),  # the last known eligible ones, not a leader
    ((), (1, 2), True, Elected(NO_LEADER)),
])  # fmt: skip
def test_where_nobody_is_eligible_either_the_last_known_leader_leads(
    last_known: tuple[int, ...], up: tuple[int, ...], elr_enabled: bool, elected: Elected
) -> None:
    before = OFFLINE_WITH_ELR._replace(elr=(), last_known_elr=last_known)
    assert elect(before, [], [], before.replicas, rules(*up, elr_enabled=elr_enabled)) == elected


def test_a_replica_that_is_neither_in_sync_nor_eligible_is_never_elected_cleanly() -> None:
    assert changed(OFFLINE, PartitionTarget(), rules(1, 2)) is None
    assert changed(OFFLINE, PartitionTarget(), rules(1, 2, elr_enabled=False)) is None


@pytest.mark.parametrize(("before", "election"), [
    (FOO, Election.ONLINE), (FOO, Election.UNCLEAN), (BAR, Election.ONLINE), (BAR, Election.UNCLEAN),
    (BAZ, Election.PREFERRED), (OFFLINE, Election.ONLINE),
])  # fmt: skip
def test_what_is_as_it_should_be_does_not_change(before: PartitionRegistration, election: Election) -> None:
    up = ALL if before is not OFFLINE else (1, 2)
    assert changed(before, PartitionTarget(), rules(*up, election=election)) is None


@pytest.mark.parametrize(("version", "isr", "leader"), [
    (LATEST, [2, 1], -2),
    (12, [2, 1], -2),
    (OLD, [2, 1], 1),  # KAFKA-15021
])  # fmt: skip
def test_an_isr_that_shrinks_takes_a_new_leader_epoch_of_old_only(version: int, isr: list[int], leader: int) -> None:
    assert changed(FOO, PartitionTarget(isr=isr), rules(*ALL, metadata_version=version)) == partition_change(
        isr=isr, leader=leader
    )


def test_an_isr_that_grows_takes_no_new_leader_epoch() -> None:
    assert changed(BAZ, PartitionTarget(isr=[1, 3, 2]), rules(*ALL, metadata_version=OLD)) == partition_change(
        isr=[1, 3, 2]
    )


def test_a_leader_that_is_not_in_sync_any_more_is_replaced() -> None:
    assert changed(FOO, PartitionTarget(isr=[2, 3]), rules(*ALL)) == partition_change(isr=[2, 3], leader=2)


def test_an_assignment_that_only_changes_its_order_keeps_its_leader() -> None:
    expected = partition_change(replicas=[3, 2, 1], directories=[directory(3), directory(2), directory(1)])
    assert changed(FOO, PartitionTarget(replicas=[3, 2, 1]), rules(*ALL)) == expected


def test_a_metadata_without_directories_gets_none() -> None:
    assert changed(FOO, PartitionTarget(replicas=[3, 2, 1]), rules(*ALL, metadata_version=16)) == partition_change(
        replicas=[3, 2, 1]
    )


def test_a_reassignment_is_complete_when_all_that_stay_are_in_sync() -> None:
    assert changed(BAR, PartitionTarget(isr=[1, 2, 3, 4]), rules(*ALL)) == partition_change(
        replicas=[2, 3, 4],
        isr=[2, 3, 4],
        leader=2,
        removing_replicas=[],
        adding_replicas=[],
        directories=[directory(2), directory(3), directory(4)],
    )


def test_a_reassignment_by_which_as_many_come_as_go_waits_for_those_that_come_alone() -> None:
    expected = partition_change(
        replicas=[2, 3, 4],
        isr=[2, 4],
        leader=2,
        removing_replicas=[],
        adding_replicas=[],
        directories=[directory(2), directory(3), directory(4)],
    )
    assert changed(BAR, PartitionTarget(isr=[1, 2, 4]), rules(*ALL)) == expected
    assert changed(BAR, PartitionTarget(isr=[1, 2, 3]), rules(*ALL)) is None


def test_a_reassignment_by_which_more_go_than_come_waits_for_all_that_stay() -> None:
    before = BAR._replace(removing_replicas=(1, 3))
    assert changed(before, PartitionTarget(isr=[1, 3, 4]), rules(*ALL)) == partition_change(isr=[1, 3, 4])
    done = changed(before, PartitionTarget(isr=[1, 2, 3, 4]), rules(*ALL))
    assert done is not None
    assert (done.replicas, done.isr, done.removing_replicas) == ([2, 4], [2, 4], [])


def test_a_reassignment_without_anybody_who_stays_in_sync_is_not_over() -> None:
    assert changed(partition([1, 2], [1], 1, removing_replicas=(1,)), PartitionTarget(), rules(*ALL)) is None


def test_a_replica_that_was_to_come_and_is_to_go_again_keeps_the_reassignment_open() -> None:
    before = partition([1, 2, 3], [1, 2], 1, adding_replicas=(3,))
    assert changed(before, PartitionTarget(replicas=[1, 2, 3], removing_replicas=[3]), rules(*ALL)) == partition_change(
        removing_replicas=[3]
    )


def test_a_reassignment_that_is_reverted_raises_the_leader_epoch() -> None:
    target = PartitionTarget(isr=[1, 2, 3], replicas=[1, 2, 3], adding_replicas=[], removing_replicas=[])
    assert changed(BAR, target, rules(*ALL)) == partition_change(
        replicas=[1, 2, 3],
        leader=1,
        removing_replicas=[],
        adding_replicas=[],
        directories=[directory(1), directory(2), directory(3)],
    )


def test_a_replica_that_is_only_removed_goes_at_once() -> None:
    assert changed(FOO, PartitionTarget(replicas=[1, 2, 3], removing_replicas=[3]), rules(*ALL)) == partition_change(
        replicas=[1, 2], isr=[2, 1], leader=1, directories=[directory(1), directory(2)]
    )


def test_a_replica_that_is_added_waits_for_its_copy_in_the_directory_it_is_given() -> None:
    by = rules(*ALL, default_directory=directory)
    assert changed(FOO, PartitionTarget(replicas=[1, 2, 3, 4], adding_replicas=[4]), by) == partition_change(
        replicas=[1, 2, 3, 4],
        adding_replicas=[4],
        directories=[directory(1), directory(2), directory(3), directory(4)],
    )


def test_a_leader_that_stops_is_demoted_even_if_a_completed_reassignment_leaves_no_other() -> None:
    before = partition([2, 3, 0, 1], [0, 1], 1, removing_replicas=(0, 1), adding_replicas=(2, 3))
    assert changed(before, PartitionTarget(isr=[0, 1, 2, 3]), rules()) == partition_change(
        replicas=[2, 3],
        isr=[2, 3],
        leader=NO_LEADER,
        removing_replicas=[],
        adding_replicas=[],
        directories=[directory(2), directory(3)],
    )


def test_an_unclean_leader_is_alone_in_sync_and_recovers() -> None:
    unclean = rules(*NOT_3, election=Election.UNCLEAN)
    expected = partition_change(isr=[2], leader=2, leader_recovery_state=RECOVERING)
    assert changed(FOO, PartitionTarget(isr=[3]), unclean) == expected
    assert changed(OFFLINE, PartitionTarget(), unclean) == expected


def test_an_unclean_election_ends_what_was_eligible() -> None:
    unclean = rules(*NOT_3, election=Election.UNCLEAN)
    assert changed(OFFLINE_WITH_ELR, PartitionTarget(), unclean) == partition_change(
        isr=[2], leader=2, leader_recovery_state=RECOVERING, eligible_leader_replicas=[], last_known_elr=[]
    )


@pytest.mark.parametrize("state", [RECOVERED, RECOVERING])
def test_a_clean_election_leaves_the_recovery_state_as_it_is(state: int) -> None:
    before = partition([1, 2, 3], [1], 1, leader_recovery_state=state)
    offline = rules(2, 3, elr_enabled=False)
    assert changed(before, PartitionTarget(), offline) == partition_change(leader=NO_LEADER)
    assert changed(before._replace(leader=NO_LEADER), PartitionTarget(), rules(1)) == partition_change(leader=1)


def test_a_leader_says_that_it_has_recovered() -> None:
    before = partition([1, 2, 3], [1], 1, leader_recovery_state=RECOVERING)
    assert changed(before, PartitionTarget(leader_recovery_state=RECOVERED), rules(*ALL)) == partition_change(
        leader_recovery_state=RECOVERED
    )


FOUR = partition([1, 2, 3, 4], [1, 2, 3, 4], 1)


@pytest.mark.parametrize(("before", "isr", "elr"), [
    (FOUR, [1, 2], [3, 4]),
    (FOUR, [1], [2, 3, 4]),
    (FOUR, [1, 2, 3], None),  # min ISR is kept: nobody needs to be eligible
    (FOUR._replace(isr=(1,), elr=(3,)), [1, 4], None),
])  # fmt: skip
def test_who_leaves_the_isr_below_min_isr_stays_eligible(
    before: PartitionRegistration, isr: list[int], elr: list[int] | None
) -> None:
    assert changed(before, PartitionTarget(isr=isr), rules(*ALL, min_isr=3)) == partition_change(
        isr=isr, eligible_leader_replicas=elr
    )


def test_enough_in_sync_end_the_eligibility_of_others() -> None:
    before = FOUR._replace(isr=(1, 2), elr=(3,), last_known_elr=(4,))
    assert changed(before, PartitionTarget(isr=[1, 2, 3]), rules(*ALL, min_isr=3)) == partition_change(
        isr=[1, 2, 3], eligible_leader_replicas=[], last_known_elr=[]
    )


def test_without_the_feature_nobody_is_eligible_and_the_last_one_stays_in_sync() -> None:
    off = rules(*ALL, min_isr=3, elr_enabled=False)
    assert changed(FOUR, PartitionTarget(isr=[1, 2]), off) == partition_change(isr=[1, 2])
    assert changed(FOUR._replace(elr=(3,)), PartitionTarget(), off) == partition_change(eligible_leader_replicas=[])
    alone = partition([1], [1], 1)
    assert changed(alone, PartitionTarget(isr=[]), rules(elr_enabled=False)) == partition_change(leader=NO_LEADER)


def test_a_broker_that_may_have_lost_records_is_not_eligible() -> None:
    before = FOUR._replace(isr=(1,), elr=(2, 3))
    unclean = PartitionTarget(isr=[1], unclean_shutdowns=(3,))
    assert changed(before, unclean, rules(*ALL, min_isr=3)) == partition_change(eligible_leader_replicas=[2])


def test_the_last_known_leader_is_noted_when_nobody_is_in_sync_and_forgotten_when_somebody_leads() -> None:
    alone = partition([1, 2], [1], 1, elr=(2,))
    lost = changed(alone, PartitionTarget(isr=[]), rules(min_isr=2))
    assert lost == partition_change(isr=[], leader=NO_LEADER, eligible_leader_replicas=[2, 1], last_known_elr=[1])
    offline = partition([1, 2], [], NO_LEADER, elr=(1, 2), last_known_elr=(1,))
    assert changed(offline, PartitionTarget(), rules(2, min_isr=2)) == partition_change(
        isr=[2], leader=2, eligible_leader_replicas=[1], last_known_elr=[]
    )
    assert changed(offline, PartitionTarget(), rules(min_isr=2)) is None


def test_a_partition_that_was_offline_already_notes_its_last_replica_in_sync() -> None:
    before = partition([1, 3], [3], NO_LEADER, adding_replicas=(1,), removing_replicas=(3,))
    lost = changed(before, PartitionTarget(isr=[]), rules(1))
    assert lost == partition_change(isr=[], eligible_leader_replicas=[3], last_known_elr=[3])
    after = before._replace(isr=(), elr=(3,), last_known_elr=(3,))
    unclean = changed(after, PartitionTarget(isr=[], unclean_shutdowns=(3,)), rules(1))
    assert unclean == partition_change(eligible_leader_replicas=[])
    led = changed(after._replace(elr=()), PartitionTarget(), rules(1, 3))
    assert led is not None
    assert (led.leader, led.isr) == (3, [3])


def test_a_partition_without_directories_is_not_given_any_by_a_change_of_its_isr() -> None:
    before = FOO._replace(directories=())
    assert changed(before, PartitionTarget(isr=[1, 2]), rules(*ALL)) == partition_change(isr=[1, 2])
    moved = PartitionTarget(directories={1: directory(1)})
    assert changed(before, moved, rules(*ALL)) == partition_change(directories=[NO_UUID, directory(1), NO_UUID])
