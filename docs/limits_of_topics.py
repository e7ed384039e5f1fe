"""The limits of topics, partitions and records: rows of docs/limits.md."""

from __future__ import annotations

from docs.limit import Limit

ODD = "tests/interop/conformance/test_odd_requests.py::"
TOPICS = "tests/coordinator/cluster/"
APPEND = "tests/storage/appending/test_append.py::"
COMPRESSION = "tests/protocol/records/test_compression.py::"
CHECK = "tests/storage/appending/test_records_check.py::"
WALK = "tests/protocol/records/test_walk.py::"

TOPICS_AND_PARTITIONS = (
    Limit(
        "length of a topic's name",
        "the constant",
        ("coordinator.cluster.topics.names.MAX_LENGTH",),
        "INVALID_TOPIC_EXCEPTION",
        (f"{TOPICS}test_create_topics.py::test_an_illegal_name_is_told_what_is_wrong_with_it",),
    ),
    Limit(
        "length of the name of a topic whose log moves to another directory",
        "the length of a folder's name during the move",
        ("storage.names.MAX_FOLDER_NAME",),
        "INVALID_TOPIC_EXCEPTION",
        (f"{ODD}test_a_directory_that_is_none_and_a_topic_that_cannot_be",),
    ),
    Limit(
        "partitions that a CreateTopics makes",
        "the constant's records for the request",
        ("coordinator.cluster.decided.MAX_RECORDS",),
        "POLICY_VIOLATION for the whole request",
        (
            f"{TOPICS}test_create_topics.py::test_a_request_for_too_much_is_refused_whole",
            f"{TOPICS}test_create_topics.py::test_a_request_may_take_ten_thousand_records",
        ),
    ),
    Limit(
        "partitions that a CreatePartitions makes",
        "the constant's records for the request",
        ("coordinator.cluster.decided.MAX_RECORDS",),
        "POLICY_VIOLATION for the topics that exceed it",
        (f"{TOPICS}test_create_partitions.py::test_more_than_ten_thousand_partitions_are_refused",),
    ),
    Limit(
        "number of partitions of a coordinator's topic",
        "fixed at creation",
        ("coordinator.cluster.topics.create_partitions.MAPPED_BY_COUNT",),
        "INVALID_PARTITIONS",
        (f"{TOPICS}test_create_partitions.py::test_a_coordinators_topic_keeps_its_number_of_partitions",),
    ),
    Limit(
        "automatically created topics",
        "none if the option is false",
        ("auto.create.topics.enable",),
        "UNKNOWN_TOPIC_OR_PARTITION",
        ("tests/broker/handlers/test_metadata.py::test_nothing_is_made",),
    ),
    Limit(
        "partitions in an answer to DescribeTopicPartitions",
        "the constant",
        ("coordinator.cluster.topics.describe.MAX_PARTITIONS",),
        "a cursor for the rest",
        (f"{TOPICS}test_describe_topics.py::test_a_page_ends_at_the_limit_and_its_cursor_begins_the_next",),
    ),
)

RECORDS = (
    Limit(
        "bytes of a batch",
        "the option, of the broker or the topic",
        ("message.max.bytes",),
        "MESSAGE_TOO_LARGE",
        (
            f"{APPEND}test_a_batch_above_the_size_limit_is_refused",
            f"{APPEND}test_what_another_compression_makes_too_large_is_refused",
        ),
    ),
    Limit(
        "a batch larger than a segment",
        "the option",
        ("log.segment.bytes",),
        "RECORD_LIST_TOO_LARGE",
        (f"{APPEND}test_a_batch_larger_than_a_segment_is_refused",),
    ),
    Limit(
        "timestamps of records",
        "the options, around the time of the append",
        ("log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms"),
        "INVALID_TIMESTAMP",
        (f"{APPEND}test_a_record_too_far_in_the_future_is_named", f"{APPEND}test_timestamps_at_the_bounds_are_fine"),
    ),
    Limit(
        "lengths and counts inside a record",
        "within the record and the batch; varints of 5 and 10 bytes",
        ("protocol.records.varint.VARINT_MAX_BYTES", "protocol.records.varint.VARLONG_MAX_BYTES"),
        "INVALID_RECORD",
        (f"{WALK}test_what_is_a_record_and_what_is_not",),
    ),
    Limit(
        "validation of records",
        "the option, of the broker or the topic",
        ("odradek.records.check",),
        "records are stored unchecked",
        (f"{CHECK}test_a_topic_may_trust_its_producers",),
    ),
    Limit(
        "inflated size of a produced batch on the event loop",
        "the first constant, or the second times the bytes that arrived, but at most the third",
        (
            "storage.appending.records_check.ALWAYS_BYTES",
            "storage.appending.records_check.USUAL_RATIO",
            "storage.appending.records_check.LOOP_BYTES",
        ),
        "a thread validates the batch, and its connection waits",
        (
            f"{CHECK}test_what_inflates_beyond_a_moments_work_is_for_another_thread",
            f"{CHECK}test_work_is_in_proportion_to_what_arrived",
        ),
    ),
    Limit(
        "memory of a batch that inflates to any size",
        "one piece, and the codec's window",
        ("protocol.records.inflating.PIECE_BYTES",),
        "it is skipped piece by piece",
        (f"{WALK}test_a_value_larger_than_memory_is_passed_over_in_pieces",),
    ),
    Limit(
        "batches that threads validate at the same time",
        "the constant",
        ("broker.dispatch.settling.THREADS",),
        "other batches and their connections wait",
        ("tests/broker/produce/test_records_that_take_long.py::test_a_connections_requests_stay_in_their_order",),
    ),
    Limit(
        "inflated size of a batch that must be inflated at once: records out of order, or a conversion",
        "the constant",
        ("protocol.records.record.MAX_INFLATED_SIZE",),
        "CORRUPT_MESSAGE",
        (
            f"{COMPRESSION}test_one_byte_more_than_allowed",
            f"{COMPRESSION}test_a_bomb_takes_no_more_memory_than_the_limit",
        ),
    ),
    Limit(
        "inflated size that a snappy block announces",
        "the constant times its bytes",
        ("protocol.records.snappy._MAX_RATIO",),
        "INVALID_RECORD",
        (f"{COMPRESSION}test_a_snappy_block_that_claims_more_than_snappy_can_hold",),
    ),
    Limit(
        "invalid records that an answer names",
        "the constant; all of them are counted",
        ("protocol.records.walk.MAX_LISTED_ERRORS",),
        "not named",
        (f"{WALK}test_no_more_records_are_named_than_fit_an_answer",),
    ),
)
