"""Options of transactions: timeouts, expiry, and the transaction topic."""

from __future__ import annotations

from protocol.config import BOOLEAN, CLUSTER_WIDE, INT, SHORT, Config, option


class TransactionOptions(Config):
    """Options of transactions: timeouts, expiry, and the transaction topic."""

    add_partitions_to_txn_retry_backoff_ms = option(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        at_least=1,
        importance="high",
        doc="Pause before the broker retries the first write of a producer whose previous transaction is still ending.",
    )
    add_partitions_to_txn_retry_backoff_max_ms = option(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        at_least=0,
        importance="high",
        doc="Time after which the broker stops these retries and returns a retriable error.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = option(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        at_least=1,
        importance="low",
        doc="How often the coordinator checks for transactions that have timed out.",
    )
    transaction_max_timeout_ms = option(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        at_least=1,
        importance="high",
        doc="Longest transaction timeout that a producer may request.",
    )
    transaction_partition_verification_enable = option(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        importance="low",
        update=CLUSTER_WIDE,
        doc="Reject transactional records for partitions that are not part of the transaction.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = option(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        at_least=1,
        importance="low",
        doc="How often the coordinator checks for expired transactional ids.",
    )
    transaction_state_log_load_buffer_size = option(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        at_least=1,
        importance="high",
        doc="Has no effect: a coordinator loads its partition in pieces of 64 KiB, and serves clients between them.",
    )
    transaction_state_log_min_isr = option(
        "transaction.state.log.min.isr",
        INT,
        2,
        at_least=1,
        importance="high",
        doc="min.insync.replicas of the transaction topic.",
    )
    transaction_state_log_num_partitions = option(
        "transaction.state.log.num.partitions",
        INT,
        50,
        at_least=1,
        importance="high",
        doc="Number of partitions of the transaction topic. Do not change it once the topic exists.",
    )
    transaction_state_log_replication_factor = option(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        at_least=1,
        importance="high",
        doc="Replication factor of the transaction topic; lower if there are fewer brokers.",
    )
    transaction_state_log_segment_bytes = option(
        "transaction.state.log.segment.bytes",
        INT,
        104_857_600,
        at_least=1,
        importance="high",
        doc="Size at which a segment of the transaction topic rolls.",
    )
    transaction_two_phase_commit_enable = option(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        importance="low",
        doc="Has no effect: transactions without a timeout (KIP-939) need InitProducerId 6, which is not stable.",
    )
    transactional_id_expiration_ms = option(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        at_least=1,
        importance="high",
        doc="Time without a transaction after which a transactional id expires.",
    )
