"""The allowed differences from Apache Kafka beyond those of the conformance tests, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from broker.dispatch.route import MAX_REQUEST_ITEMS
from coordinator.cluster.brokers.features import KRAFT_VERSION
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.share_fetch import ShareFetchRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.update_features import UpdateFeaturesRequest
from protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from protocol.schema import fields_of
from tests.fuzz.failures import failure_over
from tests.fuzz.silence import is_silent_over, partitions_of
from tests.fuzz.twins import CLOSED, NO_ANSWER, ORDER, Answers, error_codes, names_a_partition_twice
from tests.fuzz.wording import wording
from tests.interop.conformance.compare import Allowed, Difference
from tests.interop.conformance.meant import (
    AT_ONCE,
    MEANT,
    ONE_TRANSACTION_TWICE,
    OPTIONS_OF_ITS_OWN,
    POISONED,
    SHARE_GROUP_WITHOUT_NAME,
)

UNKNOWN_SERVER_ERROR = -1
TIMED_OUT: Final = 7
AT_ONCE_MS: Final = 1000
LOGGER: Final = 6
MOST_OPTIONS_OF_OTHERS: Final = 100
"""Maximum number of options of any resource other than a broker."""

CORRUPT_MESSAGE: Final = 2
INVALID_RECORD: Final = 87
INVALID_REQUEST: Final = 42
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
UNSUPPORTED_VERSION: Final = 35
FENCED_MEMBER_EPOCH: Final = 110
EPOCHS: Final = "a member that joins a share group is answered once it has partitions, with the epoch that they have"
DOUBLED_MARKERS: Final = (
    "WriteTxnMarkers with two of one marker in one partition: Apache Kafka waits for an append too many"
)
PASSED_OVER_MARKERS: Final = (
    "WriteTxnMarkers whose last marker has no partition that is here: Apache Kafka counts it as written, and looks "
    "whether that was the last only where one is appended"
)
QUORUM_VERSION: Final = "the voters of this Kafka are in its configuration, those of Odradek in its log"
LOST: Final = "Produce with a partition named twice: Apache Kafka loses all but its last records"
FAILS_AS_A_WHOLE: Final = "Produce with records that are no batch for one of several partitions: here that one fails"
OF_THE_FIRST: Final = (
    "Apache Kafka asks the coordinator for several producers at once, and tells all in words that the first one's "
    "version knows; the versions are told apart here"
)
INVALID_TXN_STATE, TRANSACTION_ABORTABLE = 48, 120
FAILED: Final = "Apache Kafka has failed over it (UNKNOWN_SERVER_ERROR)"
NOT_IN_TIME: Final = "a request gives its broker less than a second, which is enough here"
SILENT: Final = "Apache Kafka has failed over it: no answer"
PARTS: Final = ("partitions", "partition_data", "partition_responses", "partition_result", "results", "topics")
NAMING: Final = (
    "name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "resource_type", "resource_name",
    "partition_index", "partition", "index", "producer_id", "first_offset", "path", "feature",
)  # fmt: skip
"""Fields with which a request names its subject."""

MERGED: Final = "what a request names twice, or without a part, is answered once, twice or not at all"

MEANT_HERE: Final[tuple[Allowed, ...]] = (
    Allowed(r"MetadataRequest .*\.topics\[\d+\]\.error_code", AT_ONCE, theirs=3),
    Allowed(r"MetadataRequest .*\.topics\[\d+\]\.partitions", AT_ONCE, theirs=[]),
    Allowed(r"MetadataRequest .*\.topics\[\d+\]\.topic_id", AT_ONCE, ours="some id", theirs="none"),
    Allowed(
        r"(Create|Delete|Describe)AclsRequest .*",
        "Kafka cannot read an ACL of types that it does not know, and closes the connection; without an authorizer "
        "every such request is refused here by its error",
        theirs=CLOSED,
    ),
    Allowed(
        r"(TxnOffsetCommitRequest v[0-3]|ProduceRequest v([3-9]|10)) .*\.error_code",
        OF_THE_FIRST,
        ours=INVALID_TXN_STATE,
        theirs=TRANSACTION_ABORTABLE,
    ),
    Allowed(
        r"(TxnOffsetCommitRequest v4|ProduceRequest v11) .*\.error_code",
        OF_THE_FIRST,
        ours=TRANSACTION_ABORTABLE,
        theirs=INVALID_TXN_STATE,
    ),
    *POISONED,
    Allowed(
        r"ShareGroup(Describe|Heartbeat)Request .*_epoch",
        EPOCHS,
        where_so=lambda ours, theirs: ours == theirs + 1,
    ),
    Allowed(
        r"ShareGroup(Describe|Heartbeat)Request .*\.assignment",
        EPOCHS,
        where_so=lambda ours, theirs: None in (ours, theirs),
    ),
    Allowed(r"ShareGroup(Describe|Heartbeat)Request .*\.assignment\.topic_partitions", EPOCHS, theirs=[]),
    Allowed(
        r"ShareGroup(Describe|Heartbeat)Request .*\.assignment\.topic_partitions\[\d+\]\.partitions\[\d+\]",
        "Apache Kafka's assignor iterates over a hash map of partitions, whose order depends on the topic's random id",
    ),
    Allowed(
        r"ShareGroupHeartbeatRequest .*\.error_message",
        EPOCHS,
        where_so=lambda ours, theirs: without_epochs(ours) == without_epochs(theirs),
    ),
    Allowed(
        r"DescribeConfigsRequest .*\.results\[\d+\]\.configs",
        "a broker has options that the other has not; the conformance tests compare those that both have",
        where_so=lambda ours, theirs: both_have_alike(ours, theirs),
    ),
    Allowed(
        r"DescribeConfigsRequest .*\.results\[\d+\]\.configs",
        "the loggers of one are a JVM's",
        where_so=lambda ours, theirs: all(row["config_source"] == LOGGER for row in (*ours, *theirs)),
    ),
    Allowed(
        r"DescribeTopicPartitionsRequest .*\.next_cursor",
        "behind a cursor at the last partition number there is nothing; Apache Kafka counts on, to a negative one",
        ours=None,
        where_so=lambda _ours, theirs: theirs["partition_index"] < 0,
    ),
    Allowed(
        r"WriteShareGroupStateRequest .*\.error_code",
        "a state batch that ends before it begins is refused; Apache Kafka stores it",
        ours=42,
        theirs=0,
    ),
)


def without_epochs(message: str | None) -> str:
    """Returns a message without its epochs."""
    return re.sub(r"\(\d+\)", "(epoch)", message or "")


def both_have_alike(ours: Any, theirs: Any) -> bool:
    """True if the options that both brokers have are equal, except for those that must differ."""
    our_options, their_options = ({row["name"]: row for row in rows} for rows in (ours, theirs))
    shared = (our_options.keys() & their_options.keys()) - OPTIONS_OF_ITS_OWN.keys()
    return len(shared) > MOST_OPTIONS_OF_OTHERS and all(our_options[name] == their_options[name] for name in shared)


def reason(difference: Difference, answers: Answers) -> str | None:
    """Returns the reason why a difference, or its whole answer, is allowed; None for an unknown difference."""
    meant_reason = next((one.reason for one in (*MEANT, *MEANT_HERE) if one.covers(difference)), None)
    if meant_reason is not None:
        return meant_reason
    if isinstance(answers.theirs, dict) and isinstance(answers.ours, dict):
        words = wording(difference, answers)
        if words is not None:
            return words
    if has_failed(answers.theirs):
        failure = failure_over(answers)
        if failure is not None:
            return f"{FAILED}: {failure}"
    why_all = next((why for why, is_so in OF_ANSWERS if is_so(answers)), None)
    if why_all is None and answers.theirs == NO_ANSWER and is_silent_over(answers.request):
        return SILENT
    return why_all


def is_not_in_time(answers: Answers) -> bool:
    has_less = getattr(answers.request, "timeout_ms", AT_ONCE_MS) < AT_ONCE_MS
    return has_less and TIMED_OUT in error_codes(answers.theirs)


def is_of_a_share_group_without_name(answers: Answers) -> bool:
    if not isinstance(answers.request, ShareFetchRequest) or answers.request.group_id != "":
        return False
    return INVALID_REQUEST in error_codes(answers.ours)


def names_a_transaction_twice(answers: Answers) -> bool:
    if not isinstance(answers.request, AddPartitionsToTxnRequest):
        return False
    names = [one.transactional_id for one in answers.request.transactions]
    return len(names) > len(set(names))


def is_merged(answers: Answers) -> bool:
    return (
        isinstance(answers.ours, dict)
        and is_doubled(answers.request)
        and merged(answers.ours) == merged(unread(answers.theirs))
    )


def is_of_the_quorums_version(answers: Answers) -> bool:
    if isinstance(answers.request, RemoveRaftVoterRequest):
        return UNSUPPORTED_VERSION in error_codes(answers.theirs)
    if not isinstance(answers.request, UpdateFeaturesRequest):
        return False
    return any(update.feature == KRAFT_VERSION for update in answers.request.feature_updates)


def loses_records(answers: Answers) -> bool:
    """True for a Produce that names a partition twice."""
    return isinstance(answers.request, ProduceRequest) and names_a_partition_twice(answers.request)


def is_of_doubled_markers(answers: Answers) -> bool:
    if not isinstance(answers.request, WriteTxnMarkersRequest) or not is_silent_over(answers.request):
        return False
    return bool(answers.theirs == NO_ANSWER)


def passes_over_the_last(answers: Answers) -> bool:
    if not isinstance(answers.request, WriteTxnMarkersRequest) or answers.theirs != NO_ANSWER:
        return False
    absent = {
        (topic["name"], part["partition_index"])
        for marker in answers.ours["markers"]
        for topic in marker["topics"]
        for part in topic["partitions"]
        if part["error_code"] == UNKNOWN_TOPIC_OR_PARTITION
    }
    passed_over = [absent.issuperset(partitions_of(marker)) for marker in answers.request.markers]
    return passed_over[-1] and not all(passed_over)


def fails_as_a_whole(answers: Answers) -> bool:
    """True for a Produce for several partitions, all of which Apache Kafka has answered with the worst error."""
    if not isinstance(answers.request, ProduceRequest):
        return False
    codes = list(error_codes(answers.theirs))
    return len(codes) > 1 and set(codes) == {CORRUPT_MESSAGE} and CORRUPT_MESSAGE in error_codes(answers.ours)


def has_too_many_items(answers: Answers) -> bool:
    return bool(answers.ours == CLOSED) and items_of(answers.request) > MAX_REQUEST_ITEMS


def items_of(value: Any) -> int:
    """Returns the number of array items in a part of a request, at all levels."""
    if isinstance(value, list):
        return len(value) + sum(map(items_of, value))
    if not hasattr(value, "__wire__"):
        return 0
    return sum(items_of(getattr(value, field.name)) for field in fields_of(type(value)))


def is_of_another_epoch(answers: Answers) -> bool:
    """True for a heartbeat of a share group's member, whose epochs differ between the brokers."""
    if not isinstance(answers.request, ShareGroupHeartbeatRequest):
        return False
    return {*error_codes(answers.ours), *error_codes(answers.theirs)} == {0, FENCED_MEMBER_EPOCH}


def has_failed(answer: Any) -> bool:
    """True for an answer with an unexpected error of its broker."""
    return UNKNOWN_SERVER_ERROR in error_codes(answer)


OF_ANSWERS: Final[tuple[tuple[str, Callable[[Answers], bool]], ...]] = (
    (NOT_IN_TIME, is_not_in_time),
    ("a request of too many items ends its connection (docs/limits.md)", has_too_many_items),
    (LOST, loses_records),
    (DOUBLED_MARKERS, is_of_doubled_markers),
    (PASSED_OVER_MARKERS, passes_over_the_last),
    (FAILS_AS_A_WHOLE, fails_as_a_whole),
    (EPOCHS, is_of_another_epoch),
    (QUORUM_VERSION, is_of_the_quorums_version),
    (ONE_TRANSACTION_TWICE[0].reason, names_a_transaction_twice),
    (SHARE_GROUP_WITHOUT_NAME[0].reason, is_of_a_share_group_without_name),
    (MERGED, is_merged),
)
"""Reasons for all differences of two answers, with their conditions."""


def merged(value: Any) -> Any:
    """Returns an answer in the form of a map: duplicate entries once, without topics that have no partitions. Apache
    Kafka collects some requests in maps, and iterates over others; this choice is no guarantee."""
    if isinstance(value, dict):
        return {name: merged(item) for name, item in value.items() if not name.endswith("error_message")}
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    by_name: dict[str, dict[str, Any]] = {}
    for item in map(merged, value):
        parts = [name for name in PARTS if isinstance(item.get(name), list)]
        if parts and not any(item[name] for name in parts):
            continue
        about = str([item.get(name) for name in ORDER])
        if about in by_name and parts:
            for name in parts:
                by_name[about][name] = [*by_name[about][name], *item[name]]
        else:
            by_name[about] = dict(item)
    return [merged(by_name[about]) for about in sorted(by_name)]


def unread(value: Any) -> Any:
    """Returns an answer of Apache Kafka with the error that Odradek returns for records on which Kafka fails
    (POISONED)."""
    if isinstance(value, list):
        return [unread(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {name: unread(item) for name, item in value.items()}
    if "record_errors" in named and named["error_code"] == UNKNOWN_SERVER_ERROR:
        named["error_code"] = INVALID_RECORD
    return named


def is_doubled(value: Any) -> bool:
    """True if a request names something twice, or a topic without partitions."""
    if isinstance(value, list):
        if value and not hasattr(value[0], "__wire__"):
            return len(value) > len(set(value))
        names = [str([getattr(item, name, None) for name in NAMING]) for item in value]
        return len(names) > len(set(names)) or any(map(is_doubled, value))
    if not hasattr(value, "__wire__"):
        return False
    inner = {field.name: getattr(value, field.name) for field in fields_of(type(value))}
    is_bare = any(inner.get(name) == [] for name in (*PARTS, "partition_indexes"))
    return is_bare or any(map(is_doubled, inner.values()))
