"""The differences from Apache Kafka that are meant, beyond those of the conformance tests, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.fuzz.twins import CLOSED, NO_ANSWER, ORDER, Answers, error_codes
from tests.interop.conformance.compare import Allowed, Difference
from tests.interop.conformance.meant import (
    AT_ONCE,
    MEANT,
    NO_PARTITION_OF_A_SHARE_GROUP,
    NOTHING_TO_TELL,
    ONE_TRANSACTION_TWICE,
    SHARE_GROUP_WITHOUT_NAME,
)

UNKNOWN_SERVER_ERROR = -1
FAILED: Final = "Apache Kafka has failed over it: UNKNOWN_SERVER_ERROR"
SILENT: Final = "Apache Kafka has failed over it: no answer"
MERGED: Final = "what a request names twice, or without a part, is answered once, twice or not at all"

MEANT_HERE: Final[tuple[Allowed, ...]] = (
    Allowed(r"MetadataRequest .*\.topics\[\d+\]\.error_code", AT_ONCE, theirs=3),
    Allowed(r"MetadataRequest .*\.topics\[\d+\]\.partitions", AT_ONCE, theirs=[]),
    Allowed(r"MetadataRequest .*\.topics\[\d+\]\.topic_id", AT_ONCE, ours="some id", theirs="none"),
    Allowed(
        r".*\.(acknowledge_)?error_message",
        "what an error code means is told in the project's own words, also where Kafka has none; the conformance tests "
        "compare the texts that people read",
        where_so=lambda ours, theirs: isinstance(ours, str),
    ),
    Allowed(
        r"(Create|Delete|Describe)AclsRequest .*",
        "Kafka cannot read an ACL of types that it does not know, and closes the connection; without an authorizer "
        "every such request is refused here by its error",
        theirs=CLOSED,
    ),
    Allowed(r"UpdateFeaturesRequest .*\.error_code", "share.version 2 is Kafka 4.4's (KIP-1191)", ours=0, theirs=95),
    Allowed(r"UpdateFeaturesRequest .*\.error_message", "as above", ours=None),
    Allowed(r"UpdateFeaturesRequest .*\.results", "as above", theirs=[]),
    *NOTHING_TO_TELL,
    *NO_PARTITION_OF_A_SHARE_GROUP,
    *SHARE_GROUP_WITHOUT_NAME,
    *ONE_TRANSACTION_TWICE,
    Allowed(
        r"ShareGroup(Describe|Heartbeat)Request .*(_epoch|\.assignment.*)",
        "a member that joins a share group is answered once it has partitions, with the epoch that they have",
    ),
)


def reason(difference: Difference, answers: Answers) -> str | None:
    """Why a difference is meant, or all of the answers that it is in; None where nothing is known of it."""
    meant_reason = next((one.reason for one in (*MEANT, *MEANT_HERE) if one.covers(difference)), None)
    if meant_reason is not None:
        return meant_reason
    if answers.theirs == NO_ANSWER:
        return SILENT if is_silent_over(answers.request) else None
    if has_failed(answers.theirs):
        return FAILED
    if not isinstance(answers.ours, str) and merged(answers.ours) == merged(answers.theirs):
        return MERGED
    return None


def is_silent_over(request: Any) -> bool:
    """Whether it is a request that Apache Kafka never answers."""
    rule = SILENT_OVER.get(type(request).__name__)
    return rule is not None and rule(request)


def names_partitions(request: Any) -> bool:
    """Of a share group: one that is not there keeps the answer from coming."""
    return any(topic.partitions for group in request.groups for topic in group.topics or ())


def has_only_doubled_strategies(request: Any) -> bool:
    names = [one.name for one in request.protocols]
    return bool(names) and all(names.count(name) > 1 for name in names)


def has_a_doubled_partition(request: Any) -> bool:
    """In one of its markers, or in two of one producer."""
    named = [
        (marker.producer_id, topic.name, index)
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]
    return len(named) > len(set(named))


def has_no_records(request: Any) -> bool:
    return any(part.records is None for topic in request.topic_data for part in topic.partition_data)


def has_a_doubled_resource(request: Any) -> bool:
    named = [(one.resource_type, one.resource_name) for one in request.resources]
    return len(named) > len(set(named))


SILENT_OVER: Final[Mapping[str, Callable[[Any], bool]]] = {
    "AlterConfigsRequest": has_a_doubled_resource,
    "DescribeShareGroupOffsetsRequest": names_partitions,
    "JoinGroupRequest": has_only_doubled_strategies,
    "ProduceRequest": has_no_records,
    "WriteTxnMarkersRequest": has_a_doubled_partition,
}


def has_failed(answer: Any) -> bool:
    """True when there is no answer, or one with an error that its broker did not foresee."""
    return answer == NO_ANSWER or UNKNOWN_SERVER_ERROR in error_codes(answer)


def merged(value: Any) -> Any:
    """Returns an answer as a map has it: what a request names twice is there once, what it names without a part is not.
    Apache Kafka gathers some requests in maps and walks through others; which one it does is no promise to anybody."""
    if isinstance(value, dict):
        return {name: merged(item) for name, item in value.items() if not name.endswith("error_message")}
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    by_name: dict[str, dict[str, Any]] = {}
    for item in map(merged, value):
        parts = [name for name, inner in item.items() if isinstance(inner, list)]
        if parts and not any(item[name] for name in parts):
            continue
        about = str([item.get(name) for name in ORDER])
        if about in by_name and parts:
            for name in parts:
                by_name[about][name] = [*by_name[about][name], *item[name]]
        else:
            by_name[about] = dict(item)
    return [merged(by_name[about]) for about in sorted(by_name)]
