"""The limits of groups, transactions and share groups: rows of docs/limits.md."""

from __future__ import annotations

from docs.limit import Limit

GROUPS = "tests/coordinator/group/"
TRANSACTIONS = "tests/coordinator/transaction/"
SHARE_PARTITIONS = "tests/coordinator/share_partition/"

GROUPS_OF_CONSUMERS = (
    Limit(
        "session timeout of a classic member",
        "between the two options",
        (
            "group.min.session.timeout.ms",
            "group.max.session.timeout.ms",
        ),
        "INVALID_SESSION_TIMEOUT",
        ("tests/broker/handlers/test_join_group.py::test_a_session_timeout_out_of_bounds_is_refused",),
    ),
    Limit(
        "rebalance timeout of a classic member",
        "any int32; a group whose static members are all absent checks for them at most once in the constant's time",
        ("coordinator.group.classic.rebalance.LEAST_WAIT_FOR_JOINS_MS",),
        "the group waits for that time",
        (
            f"{GROUPS}test_hostile_members.py::test_a_group_of_absent_static_members_without_rebalance_timeout_is_no_endless_work",
        ),
    ),
    Limit(
        "members of a classic group",
        "the option",
        ("group.max.size",),
        "GROUP_MAX_SIZE_REACHED",
        (f"{GROUPS}test_limits.py::test_a_full_classic_group_takes_nobody_new",),
    ),
    Limit(
        "members of a consumer group",
        "the option",
        ("group.consumer.max.size",),
        "GROUP_MAX_SIZE_REACHED",
        (f"{GROUPS}test_consumer_heartbeat.py::test_a_full_group_takes_nobody_new",),
    ),
    Limit(
        "assigned member ids that are never used",
        "each expires after its session timeout",
        ("group.max.session.timeout.ms",),
        "the id is removed",
        (f"{GROUPS}test_limits.py::test_a_member_id_that_is_never_used_is_forgotten_after_its_session_timeout",),
    ),
    Limit(
        "strategies of a classic member",
        "at least one, each counted once",
        (),
        "INCONSISTENT_GROUP_PROTOCOL for none",
        (
            f"{GROUPS}test_hostile_members.py::test_no_strategy_at_all_is_refused",
            f"{GROUPS}test_hostile_members.py::test_a_strategy_that_is_named_twice_counts_once",
        ),
    ),
    Limit(
        "metadata and assignments of a classic group (one record)",
        "the maximum size of a batch of its topic",
        ("message.max.bytes",),
        "UNKNOWN_SERVER_ERROR, and the members join again",
        (
            f"{GROUPS}test_classic_groups.py::test_assignments_too_large_for_a_record_are_refused_and_the_members_rebalance",
        ),
    ),
    Limit(
        "length of a name in a coordinator's record",
        "an int16",
        (),
        "UNKNOWN_SERVER_ERROR",
        (f"{GROUPS}test_serde.py::test_a_name_too_long_for_a_record_is_refused",),
    ),
    Limit(
        "metadata of a committed offset",
        "the option, in UTF-16 units",
        ("offset.metadata.max.bytes",),
        "OFFSET_METADATA_TOO_LARGE for the partition",
        (
            f"{GROUPS}test_limits.py::test_metadata_of_an_offset_has_a_greatest_length",
            f"{GROUPS}test_limits.py::test_metadata_of_a_transactions_offset_has_a_greatest_length",
        ),
    ),
    Limit(
        "cost of a topic pattern",
        "the constants: memory of the compiled pattern, and number of costly repetitions",
        (
            "coordinator.group.regex.MAX_MEMORY_BYTES",
            "coordinator.group.regex.MAX_COSTLY_PARTS",
        ),
        "INVALID_REGULAR_EXPRESSION",
        (
            f"{GROUPS}test_consumer_patterns.py::test_a_pattern_that_costs_too_much_is_refused",
            f"{GROUPS}test_consumer_patterns.py::test_patterns_match_whole_names_in_linear_time",
        ),
    ),
    Limit(
        "groups and their offsets",
        "offsets of an empty group expire, and the group with them; one run checks the constant's number of groups",
        (
            "offsets.retention.minutes",
            "coordinator.group.offsets.delete.GROUPS_AT_ONCE",
        ),
        "tombstones",
        (f"{GROUPS}test_offsets.py::test_many_groups_expire_in_several_goes",),
    ),
    Limit(
        "timers of a group that set themselves for the present moment",
        "the constant's runs in one call",
        ("coordinator.group.timers.MAX_RUNS",),
        "the next run is a second later",
        (f"{GROUPS}test_hostile_members.py::test_a_timer_that_sets_itself_for_now_does_not_hold_the_clock",),
    ),
    Limit(
        "retries of a timer that fails because of a bug in the broker",
        "growing pauses, up to the constant",
        ("coordinator.group.timers.MAX_RETRY_MS",),
        "a traceback in the log; other timers are not affected",
        (
            f"{GROUPS}test_hostile_members.py::test_a_timer_that_fails_comes_again_later_and_later",
            f"{GROUPS}test_hostile_members.py::test_a_timer_that_fails_keeps_no_other_waiting",
        ),
    ),
)

TRANSACTIONAL = (
    Limit(
        "timeout of a transaction",
        "1 to the option",
        ("transaction.max.timeout.ms",),
        "INVALID_TRANSACTION_TIMEOUT",
        (f"{TRANSACTIONS}test_init_producer_id.py::test_a_timeout_out_of_bounds_is_refused",),
    ),
    Limit(
        "transactional ids",
        "idle ids expire",
        ("transactional.id.expiration.ms",),
        "a tombstone",
        (
            f"{TRANSACTIONS}test_time.py::test_an_idle_id_is_forgotten",
            f"{TRANSACTIONS}test_time.py::test_many_idle_ids_go_in_several_batches",
        ),
    ),
    Limit(
        "partitions that a producer adds to a transaction",
        "none of an internal topic",
        (),
        "TOPIC_AUTHORIZATION_FAILED",
        (
            "tests/broker/test_transactions.py::test_no_client_adds_a_coordinators_own_topic",
            "tests/broker/test_transactions.py::test_an_internal_topic_keeps_the_other_partitions_out",
        ),
    ),
)

SHARE_GROUPS = (
    Limit(
        "members of a share group",
        "the option",
        ("group.share.max.size",),
        "GROUP_MAX_SIZE_REACHED",
        (f"{GROUPS}test_share_groups.py::test_requests_that_make_no_sense_are_refused",),
    ),
    Limit(
        "length of a member's id in a ShareFetch",
        "the constant",
        ("broker.handlers.share_fetch.MAX_MEMBER_ID_LENGTH",),
        "INVALID_REQUEST",
        ("tests/interop/conformance/test_share_groups.py::test_fetches_that_are_refused",),
    ),
    Limit(
        "acquired records of a share partition",
        "the option, of the group",
        ("group.share.partition.max.record.locks",),
        "no more records are acquired",
        (f"{SHARE_PARTITIONS}test_acquire.py::test_no_more_than_the_limit_of_records_is_in_flight",),
    ),
    Limit(
        "deliveries of a record of a share group",
        "the option, of the group",
        ("group.share.delivery.count.limit",),
        "the record is archived",
        (f"{SHARE_PARTITIONS}test_acknowledge.py::test_a_record_released_past_its_delivery_limit_is_archived",),
    ),
    Limit(
        "time of an acquisition lock",
        "the option, of the group",
        (
            "group.share.record.lock.duration.ms",
            "group.share.max.record.lock.duration.ms",
        ),
        "the record is available to other consumers",
        (f"{SHARE_PARTITIONS}test_expiry.py::test_a_lock_that_runs_out_makes_the_records_available",),
    ),
    Limit(
        "state batches of a share partition",
        "none ends before its first offset",
        (),
        "INVALID_REQUEST",
        ("tests/coordinator/share/test_shard.py::test_a_batch_that_ends_before_it_begins_is_refused",),
    ),
    Limit(
        "state batches of a share partition in WriteShareGroupState",
        "the constant",
        ("broker.handlers.write_share_group_state.MAX_STATE_BATCHES",),
        "INVALID_REQUEST",
        (
            "tests/broker/handlers/test_write_share_group_state.py::test_more_state_batches_than_a_partition_has_are_refused",
        ),
    ),
    Limit(
        "updates of a share partition between two snapshots",
        "the option",
        ("share.coordinator.snapshot.update.records.per.snapshot",),
        "a snapshot is written",
        ("tests/coordinator/share/test_shard.py::test_after_so_many_updates_there_is_a_snapshot",),
    ),
    Limit(
        "digits of the partition in a share partition's key (FindCoordinator)",
        "the constant, then an int32",
        ("broker.handlers.find_coordinator.MAX_DIGITS",),
        "INVALID_REQUEST",
        ("tests/broker/handlers/test_find_coordinator.py::test_anything_else_is_none",),
    ),
)
