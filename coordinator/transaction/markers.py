"""The markers of decided transactions that must still be written.

Source: Kafka's TransactionMarkerChannelManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from coordinator.transaction.state import State
from coordinator.transaction.transaction import Transaction
from protocol.types import TopicPartition


class Markers(NamedTuple):
    """The end of a transaction, and the partitions that need its marker."""

    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    transaction_version: int
    """The transaction version of the client: from 2 on, a partition accepts a marker only with a new epoch
    (KIP-1228)."""
    partitions: tuple[TopicPartition, ...]


Written: TypeAlias = Mapping[str, Iterable[TopicPartition]]
"""The partitions, by transactional id, that have their marker now, or will never need it."""


def markers_of(ending: Transaction, partitions: Iterable[TopicPartition]) -> Markers:
    """Returns the markers of a decided transaction for these partitions."""
    return Markers(
        ending.transactional_id,
        ending.producer_id,
        ending.epoch,
        ending.state is State.PREPARE_COMMIT,
        ending.client_version,
        tuple(sorted(partitions)),
    )
