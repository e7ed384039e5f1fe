"""The broker's options for the transaction coordinator.

Each attribute is Kafka's option of that name, with dots; the defaults are Kafka's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

RETRY_MS: Final = 100
"""Pause before a marker is written again: its partition's log is offline, or its coordinator is loading."""


class TransactionSettings(NamedTuple):
    """The options in force."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
