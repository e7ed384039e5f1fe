"""Options of transactions: timeouts, expiry, and the transaction topic."""

from __future__ import annotations

from protocol.config import BOOLEAN, CLUSTER_WIDE, INT, SHORT, Config, option


class TransactionOptions(Config):
    """Options of transactions: timeouts, expiry, and the transaction topic."""

    add_partitions_to_txn_retry_backoff_ms = option(
        INT,
        20,
        "Pause before the broker retries the first write of a producer whose previous transaction is still ending.",
        at_least=1,
        importance="high",
    )
    add_partitions_to_txn_retry_backoff_max_ms = option(
        INT,
        100,
        "Time after which the broker stops these retries and returns a retriable error.",
        at_least=0,
        importance="high",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = option(
        INT,
        10_000,
        "How often the coordinator checks for transactions that have timed out.",
        at_least=1,
        importance="low",
    )
    transaction_max_timeout_ms = option(
        INT, 900_000, "Longest transaction timeout that a producer may request.", at_least=1, importance="high"
    )
    transaction_partition_verification_enable = option(
        BOOLEAN,
        True,
        "Reject transactional records for partitions that are not part of the transaction.",
        importance="low",
        update=CLUSTER_WIDE,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = option(
        INT, 3_600_000, "How often the coordinator checks for expired transactional ids.", at_least=1, importance="low"
    )
    transaction_state_log_load_buffer_size = option(
        INT,
        5_242_880,
        "Has no effect: a coordinator loads its partition in pieces of 64 KiB, and serves clients between them.",
        at_least=1,
        importance="high",
    )
    transaction_state_log_min_isr = option(
        INT, 2, "min.insync.replicas of the transaction topic.", at_least=1, importance="high"
    )
    transaction_state_log_num_partitions = option(
        INT,
        50,
        "Number of partitions of the transaction topic. Do not change it once the topic exists.",
        at_least=1,
        importance="high",
    )
    transaction_state_log_replication_factor = option(
        SHORT,
        3,
        "Replication factor of the transaction topic; lower if there are fewer brokers.",
        at_least=1,
        importance="high",
    )
    transaction_state_log_segment_bytes = option(
        INT, 104_857_600, "Size at which a segment of the transaction topic rolls.", at_least=1, importance="high"
    )
    transaction_two_phase_commit_enable = option(
        BOOLEAN,
        False,
        "Has no effect: transactions without a timeout (KIP-939) need InitProducerId 6, which is not stable.",
        importance="low",
    )
    transactional_id_expiration_ms = option(
        INT,
        604_800_000,
        "Time without a transaction after which a transactional id expires.",
        at_least=1,
        importance="high",
    )
