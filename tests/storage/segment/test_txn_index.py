"""Tests the index of aborted transactions, as Kafka's TransactionIndexTest does."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.disk import OsDisk
from storage.open_files import MAX_TXN_INDEXES
from storage.segment.index import CorruptIndex
from storage.segment.txn_index import AbortedTxn, TransactionIndex

DISK = OsDisk()
ABORTED = [AbortedTxn(0, 0, 10, 11), AbortedTxn(1, 5, 15, 13), AbortedTxn(2, 18, 35, 25), AbortedTxn(3, 32, 50, 40)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000000.txnindex"


@pytest.fixture
def index(path: Path) -> TransactionIndex:
    index = TransactionIndex(str(path), 0, disk=DISK)
    for aborted in ABORTED:
        index.append(aborted)
    return index


def test_an_index_without_aborted_transactions_has_no_file(path: Path) -> None:
    index = TransactionIndex(str(path), 0, disk=DISK)
    assert index.is_empty
    assert list(index) == []
    assert index.collect(0, 100) == ([], False)
    index.sanity_check()
    index.truncate_to(0)
    index.reset()
    index.flush()
    index.rename(f"{path}.deleted")
    index.delete()
    assert list(path.parent.iterdir()) == []


def test_the_file_is_kafka_s(path: Path) -> None:
    TransactionIndex(str(path), 0, disk=DISK).append(AbortedTxn(4000, 7, 19, 12))
    assert path.read_bytes() == bytes.fromhex(
        "0000 0000000000000fa0 0000000000000007 0000000000000013 000000000000000c"
    )


def test_what_was_appended_is_read_again(index: TransactionIndex, path: Path) -> None:
    index.flush()
    assert list(TransactionIndex(str(path), 0, disk=DISK)) == ABORTED
    index.sanity_check()


@pytest.mark.parametrize(
    ("fetch_offset", "upper_bound", "transactions", "complete"),
    [
        (0, 100, ABORTED, False),
        (0, 32, ABORTED[:3], True),
        (0, 35, ABORTED, True),
        (10, 35, ABORTED, True),
        (11, 35, ABORTED[1:], True),
        (20, 41, ABORTED[2:], False),
        (51, 100, [], False),
    ],
)
def test_transactions_with_records_in_the_range_are_collected(
    index: TransactionIndex, fetch_offset: int, upper_bound: int, transactions: list[AbortedTxn], complete: bool
) -> None:
    assert index.collect(fetch_offset, upper_bound) == (transactions, complete)


@pytest.mark.parametrize(("offset", "left"), [(51, 4), (50, 3), (36, 3), (35, 2), (10, 0), (0, 0)])
def test_truncation_drops_transactions_that_ended_there_or_later(
    index: TransactionIndex, path: Path, offset: int, left: int
) -> None:
    index.truncate_to(offset)
    assert list(index) == ABORTED[:left]
    assert path.stat().st_size == left * 34


def test_transactions_end_in_order(index: TransactionIndex) -> None:
    with pytest.raises(AssertionError):
        index.append(AbortedTxn(4, 41, 50, 51))


def test_a_torn_entry_is_refused_by_the_check_and_overwritten_by_an_append(path: Path, index: TransactionIndex) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    torn = TransactionIndex(str(path), 0, disk=DISK)
    with pytest.raises(CorruptIndex, match="not a multiple of 34"):
        torn.sanity_check()
    assert list(torn) == ABORTED[:3]
    torn.append(ABORTED[3])
    assert list(torn) == ABORTED


def test_a_transaction_that_ended_before_the_segment_is_corruption(path: Path, index: TransactionIndex) -> None:
    with pytest.raises(CorruptIndex, match="ended outside of offsets 100 to"):
        TransactionIndex(str(path), 100, disk=DISK).sanity_check()


def test_an_unknown_version_is_corruption(path: Path, index: TransactionIndex) -> None:
    path.write_bytes(b"\0\1" + bytes(32))
    with pytest.raises(CorruptIndex, match="version 1"):
        list(TransactionIndex(str(path), 0, disk=DISK))


def test_a_renamed_index_is_read_from_its_new_place(path: Path, index: TransactionIndex) -> None:
    index.rename(f"{path}.swap")
    assert list(index) == ABORTED
    index.reset()
    assert index.is_empty
    index.delete()
    assert list(path.parent.iterdir()) == []


def test_indexes_that_are_no_longer_in_memory_are_read_again(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.txnindex") for number in range(MAX_TXN_INDEXES + 2)]
    indexes = [TransactionIndex(path, 0, disk=DISK) for path in paths]
    for index in indexes:
        index.append(ABORTED[0])
    for index in indexes:
        index.append(ABORTED[1])
        assert index.collect(0, 100) == (ABORTED[:2], False)
    assert [list(index) for index in indexes] == [ABORTED[:2]] * len(indexes)


def test_what_is_being_looked_at_may_be_appended_to(index: TransactionIndex) -> None:
    looking = iter(index)
    assert next(looking) == ABORTED[0]
    index.append(AbortedTxn(4, 41, 60, 51))
    assert list(looking) == ABORTED[1:]
