"""Transactions: timeouts, expiry, and their topic."""

from __future__ import annotations

from protocol.config import BOOLEAN, CLUSTER_WIDE, INT, SHORT, Config, option


class TransactionOptions(Config):
    """Transactions: timeouts, expiry, and their topic."""

    add_partitions_to_txn_retry_backoff_ms = option(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        at_least=1,
        importance="high",
        doc="How long a producer's first write waits before it is tried again while its last transaction still ends.",
    )
    add_partitions_to_txn_retry_backoff_max_ms = option(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        at_least=0,
        importance="high",
        doc="For how long that is tried, before the producer is told to try again itself.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = option(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        at_least=1,
        importance="low",
        doc="How often timed-out transactions are looked for.",
    )
    transaction_max_timeout_ms = option(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        at_least=1,
        importance="high",
        doc="Longest transaction timeout that a producer may ask for.",
    )
    transaction_partition_verification_enable = option(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        importance="low",
        update=CLUSTER_WIDE,
        doc="Refuse transactional records for partitions that are not part of the transaction.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = option(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        at_least=1,
        importance="low",
        doc="How often expired transactional ids are looked for.",
    )
    transaction_state_log_load_buffer_size = option(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        at_least=1,
        importance="high",
        doc="Without effect: a coordinator loads its partition in pieces of 64 KiB, and serves clients in between.",
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
        doc="Partitions of the transaction topic; not to be changed once it exists.",
    )
    transaction_state_log_replication_factor = option(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        at_least=1,
        importance="high",
        doc="Replicas of the transaction topic; fewer where there are fewer brokers.",
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
        doc="Without effect: transactions without a timeout (KIP-939) need InitProducerId 6, which is not stable.",
    )
    transactional_id_expiration_ms = option(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        at_least=1,
        importance="high",
        doc="A transactional id without transactions for this long is forgotten.",
    )
