"""Which markers are still to be written, of the transactions that are decided.

Source: Kafka's TransactionMarkerChannelManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from coordinator.transaction.state import State
from coordinator.transaction.transaction import Transaction
from protocol.types import TopicPartition


class Markers(NamedTuple):
    """A transaction's end, and the partitions that are to know of it."""

    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    transaction_version: int
    """The transaction version of the client: from 2 on, a partition takes a marker only with a new epoch (KIP-1228)."""
    partitions: tuple[TopicPartition, ...]


Written: TypeAlias = Mapping[str, Iterable[TopicPartition]]
"""By transactional id, the partitions that have their marker now, or will never need one."""


def markers_of(ending: Transaction, partitions: Iterable[TopicPartition]) -> Markers:
    """The markers of a decided transaction, for those of its partitions."""
    return Markers(
        ending.transactional_id,
        ending.producer_id,
        ending.epoch,
        ending.state is State.PREPARE_COMMIT,
        ending.client_version,
        tuple(sorted(partitions)),
    )
