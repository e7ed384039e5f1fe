"""The limits of connections, frames, requests and sessions: rows of docs/limits.md."""

from __future__ import annotations

from docs.limit import Limit

ADMISSION = "tests/broker/test_admission.py::"
LISTENER = "tests/broker/test_listener.py::"
LINES = "tests/broker/test_connection_lines.py::"
MEMORY = "tests/broker/test_request_memory.py::"
GARBAGE = f"{LISTENER}test_garbage_costs_its_own_connection_and_one_line"
CLOSED = "the connection is closed, with one log line"
UNREAD = "the connection is not read until there is memory; requests that arrive completely are answered"
EXTREMES = "tests/broker/test_extremes.py::"
UNREAD_ANSWERS = "tests/broker/test_unread_answers.py::"
FETCH_SESSIONS = "tests/broker/test_fetch_sessions.py::"

CONNECTIONS = (
    Limit(
        "connections",
        "the option, and half of the files that the process may open; fifty more wait",
        ("max.connections", "broker.network.descriptors.WAITING_CONNECTIONS"),
        "the connection waits and is not read; the fifty-first is closed, with one log line",
        (
            f"{ADMISSION}test_connections_beyond_the_limit_wait_for_a_place",
            f"{ADMISSION}test_not_all_wait",
            f"{ADMISSION}test_brokers_among_themselves_need_no_place_of_clients",
        ),
    ),
    Limit(
        "connections made in a second",
        "the option, measured over the windows of the two quota options; fifty more wait for their turn",
        ("max.connection.creation.rate", "quota.window.num", "quota.window.size.seconds"),
        "the connection waits and is not read; the fifty-first is closed, with one log line",
        (
            f"{ADMISSION}test_connections_beyond_the_rate_wait_for_their_turn",
            "tests/broker/test_connection_rate.py::test_the_delay_is_what_is_owed_and_a_window_at_most",
        ),
    ),
    Limit(
        "connections of one address made in a second",
        "the option",
        ("odradek.connection.creation.rate.per.ip",),
        "the connection is closed after a second at most",
        (
            f"{ADMISSION}test_an_address_that_connects_too_often_is_closed_after_a_while",
            "tests/broker/test_connection_rate.py::test_an_address_that_is_refused_is_not_punished_for_asking",
        ),
    ),
    Limit(
        "connections of one address, made continuously",
        "the option, measured over the seconds of the constants",
        (
            "odradek.connection.surge.rate.per.ip",
            "broker.network.accept_rate_limiter.BURST_SECONDS",
            "broker.network.accept_rate_limiter.UNBLOCKED_SECONDS",
        ),
        "the connection is closed at once, with one log line; on Linux a filter first drops the SYN packets of its "
        "address for a moment",
        (
            "tests/broker/test_accept_rate_limiter.py::test_who_makes_too_many_is_not_heard_for_a_moment_before_any_is_closed",
            "tests/broker/test_accept_rate_limiter.py::test_an_address_that_goes_on_making_connections_has_the_surplus_closed",
            "tests/broker/test_accepting.py::test_who_is_not_taken_is_closed_and_the_next_one_served",
            "tests/broker/test_blocked_addresses.py::test_a_broker_ignores_who_surges",
        ),
    ),
    Limit(
        "log lines about refused and closed connections, and failed requests",
        "the constants: per address and minute, and in total per minute",
        ("broker.request.log_limiter.LINES_OF_ADDRESS", "broker.request.log_limiter.LINES"),
        "counted, and reported in one line a minute",
        (
            f"{ADMISSION}test_a_hundred_connections_that_are_wrong_have_ten_lines",
            f"{ADMISSION}test_a_fault_that_a_client_knows_how_to_meet_has_ten_traces",
            f"{LINES}test_all_addresses_together_have_so_many",
            f"{LINES}test_what_was_left_out_is_told_and_another_interval_begins",
        ),
    ),
    Limit(
        "connections of one address",
        "the option",
        ("max.connections.per.ip", "max.connections.per.ip.overrides"),
        CLOSED,
        (
            f"{ADMISSION}test_connections_of_an_address_are_limited",
            f"{ADMISSION}test_an_address_may_have_a_limit_of_its_own",
        ),
    ),
    Limit(
        "idle time of a connection",
        "the option; any byte ends the idle time, also a byte of an incomplete frame, which has its own time limit",
        ("connections.max.idle.ms",),
        "the connection is closed",
        (
            f"{LISTENER}test_an_idle_connection_is_closed_and_a_busy_one_is_not",
            f"{UNREAD_ANSWERS}test_a_byte_of_a_frame_now_and_then_is_activity_and_still_has_its_time",
        ),
    ),
    Limit(
        "length of a frame",
        "0 to the option",
        ("socket.request.max.bytes",),
        f"{CLOSED}, once the requests before it are answered",
        (
            f"{LISTENER}test_a_frame_larger_than_the_limit_is_refused",
            "tests/broker/test_connection_end.py::"
            "test_a_size_that_cannot_be_behind_a_request_that_waits_is_told_once_it_is_answered",
        ),
    ),
    Limit(
        "bytes of a request other than Produce",
        "the constant",
        ("broker.dispatch.dispatcher.MAX_OTHER_REQUEST_BYTES",),
        CLOSED,
        (f"{LISTENER}test_only_records_may_be_large",),
    ),
    Limit(
        "announced bytes of a frame that have not arrived",
        "memory for the first bytes, then in proportion to the bytes that have arrived",
        ("protocol.connection.FIRST_BYTES", "protocol.connection.GROWTH", "protocol.connection.USUAL_GROWTH"),
        "no more memory",
        ("tests/protocol/test_connection.py::test_room_is_in_proportion_to_what_has_come",),
    ),
    Limit(
        "memory of incomplete and unanswered requests of all connections",
        "the option, one request, and a short read for each connection",
        ("queued.max.request.bytes", "broker.network.request_memory.SHORT_READ_BYTES"),
        UNREAD,
        (
            f"{MEMORY}test_half_frames_hold_no_more_than_the_limit_and_one_frame",
            f"{MEMORY}test_requests_that_come_whole_are_answered_though_memory_is_short",
        ),
    ),
    Limit(
        "memory of incomplete and unanswered requests of one address",
        "the option's share of `queued.max.request.bytes`",
        ("odradek.queued.request.share.per.ip",),
        UNREAD,
        (f"{MEMORY}test_an_address_has_its_share_and_leaves_the_rest_to_others",),
    ),
    Limit(
        "time until a request has arrived",
        "the option, for the rest of the request or for the constant's bytes of it",
        ("odradek.request.stall.timeout.ms", "broker.network.stalls.MIN_PROGRESS_BYTES"),
        CLOSED,
        (
            f"{MEMORY}test_a_frame_that_does_not_come_further_closes_its_connection_with_one_line",
            f"{MEMORY}test_a_byte_now_and_then_is_no_progress",
            f"{MEMORY}test_a_slow_frame_that_comes_further_is_waited_for",
        ),
    ),
    Limit(
        "time that a request waits for memory, or occupies it while it is short",
        "the option",
        ("odradek.request.stall.timeout.ms",),
        CLOSED,
        (f"{MEMORY}test_who_waits_for_room_too_long_is_closed_and_so_is_who_holds_what_others_need",),
    ),
    Limit(
        "requests sent before earlier ones are answered",
        "one in flight, or the constant's Produce requests that wait for replicas; one read and part of a frame are "
        "buffered",
        (
            "broker.network.in_flight.MAX_IN_FLIGHT",
            "broker.network.connection.READ_AHEAD_BYTES",
            "broker.network.request_memory.RECEIVE_BUFFER_BYTES",
        ),
        "the connection is not read from",
        (
            f"{MEMORY}test_no_more_is_read_ahead_than_a_constant_while_an_answer_waits",
            f"{MEMORY}test_a_million_small_requests_that_wait_hold_one_read_of_them",
        ),
    ),
    Limit(
        "requests in one read",
        "the constants' number or time, then other connections have their turn",
        ("broker.request.turns.REQUESTS", "broker.request.turns.TURN_MS"),
        "answered later",
        (f"{LISTENER}test_thousands_of_tiny_requests_are_answered_in_turns_and_in_order",),
    ),
    Limit(
        "time of one request with many entries on the event loop",
        "the constants, then other connections have their turn: Produce, ShareFetch, ShareAcknowledge, ListOffsets, "
        "OffsetForLeaderEpoch, FindCoordinator, WriteTxnMarkers, share group state, and Describe APIs that list names",
        ("broker.request.turns.TURN_MS", "broker.request.turns.ENTRIES"),
        "answered later",
        (
            "tests/broker/test_turns.py::test_others_are_served_while_a_request_of_many_entries_is_at_work",
            "tests/broker/test_longest_turns.py::test_a_turn_is_no_longer_for_twice_the_entries",
        ),
    ),
    Limit(
        "entries of a large request that are handled in one turn, for an API whose entries are independent",
        "the constant, for requests with more bytes than the second constant",
        ("broker.dispatch.parts.PART_ENTRIES", "broker.dispatch.dispatcher.LARGE_REQUEST_BYTES"),
        "answered in parts, between which other requests are served",
        ("tests/broker/test_parts.py::test_a_request_is_cut_by_its_entries_and_by_those_nested_in_them",),
    ),
    Limit(
        "bytes of a request other than Produce that the event loop decodes",
        "the constant",
        ("broker.dispatch.dispatcher.MAX_BYTES_ON_LOOP",),
        "a thread decodes the request and encodes its answer",
        ("tests/broker/test_parts.py::test_others_are_answered_while_a_thread_decodes_a_large_request",),
    ),
    Limit(
        "items of a Produce that the event loop decodes: topics, partitions and tags",
        "the constants, the second for requests that are parsed in place",
        ("broker.dispatch.dispatcher.MAX_ITEMS_ON_LOOP", "broker.produce.wire.MANY_PARTITIONS"),
        "a thread decodes the request and encodes its answer",
        ("tests/broker/test_longest_turns.py::test_a_turn_of_produce_is_no_longer_for_twice_the_entries",),
    ),
    Limit(
        "records of an acknowledgement by a share group's member that are handled in one turn",
        "the constant, for records that are acknowledged unlike their neighbours",
        ("coordinator.share_partition.acknowledge.PIECE",),
        "others have their turn, and find the records that are not begun yet",
        (
            "tests/coordinator/share_partition/test_acknowledge.py::"
            "test_an_acknowledgement_whose_records_are_released_between_pieces_changes_nothing",
        ),
    ),
    Limit(
        "entries of a request that the controller decides in one turn",
        "the constant",
        ("broker.metadata.deciding.MAX_ENTRIES_ON_LOOP",),
        "a thread decides; other decisions wait for it",
        (
            "tests/broker/metadata/test_deciding.py::"
            "test_requests_are_answered_while_the_controller_decides_on_a_long_one",
        ),
    ),
    Limit(
        "lines of the audit log of one request, and of all requests in a second",
        "the constants",
        ("broker.request.audit.LINES_OF_REQUEST", "broker.request.audit.LINES_A_SECOND"),
        "counted, and reported at the end of the second in one line for each client and operation",
        (
            "tests/broker/test_audit.py::test_a_request_has_so_many_lines_and_one_with_the_count_of_the_others",
            "tests/broker/test_audit.py::test_a_second_has_so_many_lines_however_many_requests_it_has",
        ),
    ),
    Limit(
        "items of an answer: configs, members, offsets, producers, counted as often as the request names them",
        "the constant",
        ("broker.dispatch.call.MAX_ANSWER_ITEMS",),
        "the connection is closed, with one log line",
        ("tests/broker/test_turns.py::test_an_answer_has_only_so_many_items",),
    ),
    Limit(
        "bytes of an answer other than Fetch",
        "the constant, for requests with more bytes than the second constant",
        ("broker.request.bounded_answer.MAX_ANSWER_BYTES", "broker.request.bounded_answer.SMALL_REQUEST_BYTES"),
        "the connection is closed, with one log line",
        ("tests/broker/test_turns.py::test_an_answer_has_only_so_many_bytes",),
    ),
    Limit(
        "objects of a large request in flight",
        "counted as memory of requests, in proportion to its bytes",
        ("broker.network.request_memory.COUNTED_BYTES", "broker.network.request_memory.OBJECT_BYTES"),
        UNREAD,
        (f"{MEMORY}test_a_large_request_whose_answer_waits_counts_as_the_objects_that_it_became",),
    ),
    Limit(
        "answers that the peer does not read",
        "the constant's bytes, and one answer",
        ("broker.network.connection.WRITE_HIGH_WATER_BYTES", "broker.network.stalls.MIN_PROGRESS_BYTES"),
        "its requests wait; closed after `connections.max.idle.ms`, if it reads too little in half of that time",
        (
            f"{UNREAD_ANSWERS}test_a_peer_that_takes_its_answer_slowly_is_not_idle",
            f"{LISTENER}test_a_slow_reader_is_not_answered_until_it_has_read",
            f"{LISTENER}test_an_idle_client_that_does_not_read_is_cut_off",
            "tests/interop/test_limits.py::test_a_gigabyte_that_nobody_reads_takes_no_memory",
        ),
    ),
    Limit(
        "unread answers of all connections, without records in files and the constant's bytes of each connection",
        "the option, or one answer",
        ("odradek.unread.answers.max.bytes", "broker.network.connection.WRITE_HIGH_WATER_BYTES"),
        "the oldest waiting connection of the address with most unread bytes is cut off, with one log line",
        (
            f"{UNREAD_ANSWERS}test_answers_that_nobody_takes_are_bounded_over_all_connections",
            f"{UNREAD_ANSWERS}test_the_address_that_holds_most_loses_its_longest_waiting",
            "tests/interop/test_limits.py::test_answers_that_nobody_takes_are_not_all_memory",
        ),
    ),
    Limit(
        "time to read the last answers of a closing connection",
        "the option, for the constant's bytes of them",
        ("odradek.request.stall.timeout.ms", "broker.network.stalls.MIN_PROGRESS_BYTES"),
        "the connection is cut off",
        (f"{MEMORY}test_a_peer_that_does_not_take_its_last_answer_is_cut_off",),
    ),
)

REQUESTS = (
    Limit(
        "tags in a request's header",
        "the constant",
        ("broker.dispatch.header.MAX_HEADER_TAGS",),
        CLOSED,
        (f"{GARBAGE}[four thousand million tags]",),
    ),
    Limit(
        "items of arrays, and tags, in a request: topics, partitions, groups, names",
        "the constant, of all arrays together",
        ("broker.dispatch.dispatcher.MAX_REQUEST_ITEMS",),
        f"{CLOSED}, once the limit is reached",
        (
            f"{LISTENER}test_a_request_has_no_more_items_than_a_constant",
            f"{LISTENER}test_a_produce_of_empty_topics_or_tags_is_not_taken_apart",
            "tests/protocol/test_codec.py::test_a_bounded_decoder_counts_the_items_of_all_arrays_and_the_tags",
        ),
    ),
    Limit(
        "host names in an AlterClientQuotas request",
        "the constant; addresses are not counted",
        ("broker.handlers.alter_client_quotas.MAX_LOOKUPS",),
        "INVALID_REQUEST for all of the request",
        ("tests/broker/handlers/test_alter_client_quotas.py::test_more_names_than_that_are_refused",),
    ),
    Limit(
        "topics and partitions in a consumer's subscription or assignment",
        "the constant",
        ("protocol.consumer_protocol.MAX_ITEMS",),
        "handled as bytes that are not a subscription",
        ("tests/protocol/test_consumer_protocol.py::test_a_subscription_of_more_topics_than_there_can_be_is_refused",),
    ),
    Limit(
        "file of an option that clients can set: a key store, a trust store",
        "a regular file with at most the constant's bytes",
        ("broker.security.key_stores.MAX_STORE_BYTES",),
        "INVALID_REQUEST; at the start an error that names the option and the file",
        (
            "tests/broker/security/test_key_stores.py::test_a_key_store_is_a_regular_file_of_a_store_s_size",
            "tests/broker/security/test_key_stores.py::test_a_trust_store_is_a_regular_file_of_a_store_s_size",
        ),
    ),
    Limit(
        "reads of such files at work, and the time that a request waits for its read",
        "the constants, in threads of their own: other requests are served meanwhile",
        ("broker.metadata.file_reads.MAX_FILE_READS", "broker.metadata.file_reads.FILE_READ_TIMEOUT_MS"),
        "REQUEST_TIMED_OUT for the resource; a listener keeps its certificates, with a line in the log",
        (
            "tests/broker/metadata/test_file_reads.py::test_a_read_that_does_not_end_is_given_up_and_keeps_its_place",
            "tests/broker/security/test_hung_stores.py::test_others_are_served_while_a_change_waits_for_its_stores",
        ),
    ),
    Limit(
        "digits of a number in a name or a config",
        "the constant, without leading zeros; values have 32,767 characters",
        ("protocol.numbers.MAX_DIGITS", "coordinator.cluster.configs.alter.MAX_VALUE_LENGTH"),
        "INVALID_REQUEST or INVALID_CONFIG, as for any text that is not a number",
        (
            "tests/broker/handlers/test_configs.py::test_an_id_of_thousands_of_digits_is_none",
            "tests/broker/handlers/test_configs.py::test_an_id_may_begin_with_thousands_of_zeros",
            "tests/broker/handlers/test_configs.py::test_a_limit_or_a_duration_of_thousands_of_digits_is_none",
        ),
    ),
    Limit(
        "nested groups in a pattern of a config",
        "the constant",
        ("protocol.patterns.MAX_NESTING",),
        "INVALID_REQUEST or INVALID_CONFIG, as for any text that is not a pattern",
        (
            "tests/broker/handlers/test_configs.py::test_a_pattern_that_is_nested_too_deeply_is_none",
            "tests/protocol/test_numbers.py::test_a_pattern_that_cannot_be_compiled_raises_re_error",
        ),
    ),
    Limit(
        "length of the client id",
        "an int16, and the rest of the frame",
        (),
        CLOSED,
        (f"{GARBAGE}[a client id cut short]",),
    ),
    Limit(
        "text that is not UTF-8",
        "decoded as in Java, with U+FFFD for invalid bytes",
        ("protocol.primitives.AS_JAVA",),
        "answered",
        (
            "tests/protocol/test_codec.py::test_bytes_that_are_no_text_are_read_as_java_reads_them",
            "tests/interop/conformance/test_api_versions.py::test_a_text_that_is_no_utf8_is_read_as_far_as_it_is",
        ),
    ),
    Limit(
        "numbers and flags of any request, at the extremes of their types",
        "the rule of each field",
        (),
        "an answer, and no line in the log; the next request is served",
        (f"{EXTREMES}test_any_number_may_be_at_its_extremes",),
    ),
    Limit(
        "file operations that the operating system rejects as wrong (EINVAL, EBADF)",
        "no log directory goes offline",
        ("storage.failure.OUR_OWN",),
        "UNKNOWN_SERVER_ERROR, and a traceback in the log",
        ("tests/storage/test_failing_disks.py::test_a_call_that_the_system_refuses_is_a_bug_and_no_failed_directory",),
    ),
    Limit(
        "`max_bytes` of a Fetch, above the option",
        "the option",
        ("fetch.max.bytes",),
        "fewer bytes than requested",
        (f"{EXTREMES}test_any_number_may_be_at_its_extremes[fetch]",),
    ),
    Limit(
        "`max_bytes` and `partition_max_bytes` of a Fetch, below 0",
        "0",
        (),
        "nothing, or the first batch if it may exceed the limit",
        ("tests/storage/test_failing_disks.py::test_a_read_of_no_or_fewer_bytes_is_empty_or_the_first_batch",),
    ),
    Limit(
        "`max_wait_ms` of a Fetch",
        "an int32; 0 or less means no wait",
        (),
        "answered at once",
        (
            f"{EXTREMES}test_a_fetch_that_may_not_wait_is_answered_at_once",
            f"{EXTREMES}test_a_fetch_that_waits_as_long_as_can_be_said_is_answered_when_there_is_enough",
        ),
    ),
)

SESSIONS = (
    Limit(
        "fetch sessions",
        "the option; a new session replaces one that is old, unused or smaller",
        ("max.incremental.fetch.session.cache.slots",),
        "no session: each Fetch is a full fetch",
        (
            f"{FETCH_SESSIONS}test_young_sessions_are_not_evicted",
            f"{FETCH_SESSIONS}test_without_slots_every_fetch_is_whole",
        ),
    ),
    Limit(
        "partitions of all fetch sessions together",
        "the constant",
        ("broker.fetch.sessions.MAX_PARTITIONS",),
        "FETCH_SESSION_ID_NOT_FOUND for a session that grows beyond it; then each Fetch is a full fetch",
        (
            f"{FETCH_SESSIONS}test_partitions_of_all_sessions_together_are_bounded",
            f"{FETCH_SESSIONS}test_a_client_whose_session_grew_too_large_is_served_without_one",
        ),
    ),
    Limit(
        "share sessions",
        "the option; one per connection",
        ("group.share.max.share.sessions",),
        "SHARE_SESSION_LIMIT_REACHED",
        ("tests/broker/share/test_share_fetch.py::test_sessions_have_epochs_and_a_limit",),
    ),
)
