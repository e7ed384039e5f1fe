"""Tests the verification of a transaction's first write by its coordinator (KIP-890)."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import TRANSACTIONAL
from storage.disk import OsDisk
from storage.producers.entry import Origin
from storage.producers.state import ProducerState
from tests.storage.producing import ABORT, DAY_MS, PID, append, batch, error_of, marker_batch


@pytest.fixture
def verified() -> ProducerState:
    return ProducerState("unwritten", disk=OsDisk(), expiration_ms=DAY_MS, verification_enabled=True)


def test_a_transaction_s_first_write_needs_the_guard_that_is_in_place(verified: ProducerState) -> None:
    first = batch(0, attributes=TRANSACTIONAL)
    assert error_of(verified, first) is ErrorCode.INVALID_TXN_STATE
    guard = verified.start_verification(PID, 0, 0, supports_epoch_bump=True, now_ms=0)
    assert verified.check(first, Origin.CLIENT, guard=guard) is None
    verified.update(first, 0, 500)
    assert verified.start_verification(PID, 1, 0, supports_epoch_bump=True, now_ms=0) is None
    assert verified.check(batch(1, attributes=TRANSACTIONAL), Origin.CLIENT) is None


def test_a_guard_from_before_an_abort_is_stale(verified: ProducerState) -> None:
    stale = verified.start_verification(PID, 0, 0, supports_epoch_bump=False, now_ms=0)
    verified.update(marker_batch(), 0, 900, ABORT)
    verified.start_verification(PID, 0, 0, supports_epoch_bump=False, now_ms=0)
    with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
        verified.check(batch(0, attributes=TRANSACTIONAL), Origin.CLIENT, guard=stale)


def test_an_older_transaction_s_marker_leaves_a_verification_of_its_new_epoch(verified: ProducerState) -> None:
    guard = verified.start_verification(PID, 0, 1, supports_epoch_bump=True, now_ms=0)
    verified.update(marker_batch(epoch=1), 0, 900, ABORT._replace(transaction_version=2))
    assert verified.start_verification(PID, 0, 1, supports_epoch_bump=True, now_ms=0) is guard


def test_markers_need_no_verification(verified: ProducerState) -> None:
    assert verified.check(marker_batch(), Origin.COORDINATOR, marker=ABORT) is None


def test_no_sequence_overtakes_the_lowest_that_waits(verified: ProducerState) -> None:
    guard = verified.start_verification(PID, 5, 0, supports_epoch_bump=False, now_ms=0)
    assert verified.start_verification(PID, 3, 0, supports_epoch_bump=False, now_ms=0) is guard
    with pytest.raises(KafkaError, match="but 3 is not written yet"):
        verified.check(batch(5, attributes=TRANSACTIONAL), Origin.CLIENT, guard=guard)
    assert verified.check(batch(3, attributes=TRANSACTIONAL), Origin.CLIENT, guard=guard) is None


def test_with_epoch_bumps_an_unknown_producer_begins_at_zero(verified: ProducerState) -> None:
    guard = verified.start_verification(PID, 4, 0, supports_epoch_bump=True, now_ms=0)
    with pytest.raises(KafkaError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        verified.check(batch(4, attributes=TRANSACTIONAL), Origin.CLIENT, guard=guard)


def test_a_new_epoch_waits_for_its_own_lowest_sequence(verified: ProducerState) -> None:
    guard = verified.start_verification(PID, 1, 0, supports_epoch_bump=False, now_ms=0)
    verified.start_verification(PID, 9, 1, supports_epoch_bump=False, now_ms=0)
    assert verified.check(batch(9, epoch=1, attributes=TRANSACTIONAL), Origin.CLIENT, guard=guard) is None


def test_a_fenced_producer_is_not_verified(verified: ProducerState) -> None:
    append(verified, batch(0, epoch=3), 0)
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        verified.start_verification(PID, 0, 2, supports_epoch_bump=True, now_ms=0)


def test_writes_never_verified_are_forgotten(verified: ProducerState) -> None:
    guard = verified.start_verification(PID, 0, 0, supports_epoch_bump=True, now_ms=0)
    verified.remove_expired(DAY_MS)
    assert verified.start_verification(PID, 0, 0, supports_epoch_bump=True, now_ms=0) is not guard
