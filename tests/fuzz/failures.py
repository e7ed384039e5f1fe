"""Requests on which Apache Kafka fails with an unexpected error (UNKNOWN_SERVER_ERROR), for the whole request or a part
of it. Odradek gives each a sensible answer."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from protocol.records.batch import AT_MAGIC, HEADER_SIZE, LOG_OVERHEAD, MAGIC_V2
from protocol.types import NO_UUID
from tests.fuzz.silence import has_a_doubled_strategy
from tests.fuzz.twins import Answers, error_codes

ISOLATION_LEVELS: Final = (0, 1)
ACQUIRE_MODES: Final = (0, 1)
FIRST_MODE_VERSION: Final = 2
OPERATIONS: Final = range(4)
INT32_ENDS: Final = (-(1 << 31), (1 << 31) - 1)
FIRST_TOPIC_ID_VERSION: Final = 13
FIRST_ZSTD_VERSION: Final = 7
GREATEST_CODEC, CODEC_MASK, AT_CODEC, AT_SIZE = 4, 7, 22, 8
LEAST_SIZE: Final = 14
GREATEST_BATCH: Final = 1 << 20
GREATEST_SIZE: Final = (1 << 31) - 1 - LOG_OVERHEAD
UNKNOWN_TOPIC_ID: Final = 100


class Failure(NamedTuple):
    """A way in which Apache Kafka fails."""

    reason: str
    is_over: Callable[[Answers], bool]
    """Returns True if it fails on a request."""


def failure_over(answers: Answers) -> str | None:
    """Returns the reason why Apache Kafka fails on a request, if that is known."""
    failures = FAILURES.get(type(answers.request).__name__, ())
    return next((one.reason for one in failures if one.is_over(answers)), None)


def is_of_no_isolation(answers: Answers) -> bool:
    return answers.request.isolation_level not in ISOLATION_LEVELS


def has_a_negative_size(answers: Answers) -> bool:
    return answers.request.max_bytes < 0 or any(
        part.partition_max_bytes < 0 for topic in answers.request.topics for part in topic.partitions
    )


def has_no_id_beside_others(answers: Answers) -> bool:
    """It groups partitions by topic: a partition without an id by its name, which it also lacks."""
    partitions = [topic.topic_id for topic in answers.request.topics for _ in topic.partitions]
    return answers.version >= FIRST_TOPIC_ID_VERSION and NO_UUID in partitions and len(partitions) > 1


def has_a_session_at_an_end(answers: Answers) -> bool:
    return answers.request.session_id in INT32_ENDS


def has_no_operation(answers: Answers) -> bool:
    return any(config.config_operation not in OPERATIONS for one in answers.request.resources for config in one.configs)


def names_an_epoch_and_no_member(answers: Answers) -> bool:
    return any(group.member_id is None and group.member_epoch >= 0 for group in answers.request.groups)


def names_no_topic(answers: Answers) -> bool:
    return any(topic.name is None for topic in answers.request.topics or ())


def describes_what_is_not(answers: Answers) -> bool:
    """A group without a name, a topic without partitions, or a negative partition."""
    return any(
        not group.group_id or any(not topic.partitions or min(topic.partitions) < 0 for topic in group.topics or ())
        for group in answers.request.groups
    )


def has_an_odd_batch(answers: Answers) -> bool:
    """A batch that ends before its header does, or beyond an int32, and, up to zstd's version, a batch with an unknown
    codec: Kafka checks the batches before it looks up their partitions."""
    return any(is_odd(bytes(records), answers.version) for records in records_of(answers.request))


def records_of(request: Any) -> Iterator[bytes]:
    return (part.records for topic in request.topic_data for part in topic.partition_data if part.records is not None)


def is_odd(records: bytes, version: int) -> bool:
    if len(records) <= AT_MAGIC or records[AT_MAGIC] != MAGIC_V2:
        return False
    (size,) = struct.unpack_from(">i", records, AT_SIZE)
    if LEAST_SIZE <= size < HEADER_SIZE - LOG_OVERHEAD or size > GREATEST_SIZE:
        return True
    has_no_codec = len(records) > AT_CODEC and records[AT_CODEC] & CODEC_MASK > GREATEST_CODEC
    return version < FIRST_ZSTD_VERSION and has_no_codec


def names_an_unknown_id(answers: Answers) -> bool:
    return UNKNOWN_TOPIC_ID in error_codes(answers.ours)


def is_of_a_group_without_a_name(answers: Answers) -> bool:
    """Kafka opens a session first."""
    return not answers.request.group_id


def acquires_in_no_mode(answers: Answers) -> bool:
    return answers.version >= FIRST_MODE_VERSION and answers.request.share_acquire_mode not in ACQUIRE_MODES


def deletes_a_group_here(answers: Answers) -> bool:
    """Kafka's persister rejects the deletion of a share group's state if no partition has any."""
    return bool(
        answers.theirs["results"]
        == [
            {**ours, "error_code": theirs["error_code"]}
            if ours["error_code"] == 0 and theirs["error_code"] == -1
            else ours
            for ours, theirs in zip(answers.ours["results"], answers.theirs["results"], strict=True)
        ]
    )


def alters_what_is_not(answers: Answers) -> bool:
    return any(part.partition_index < 0 for topic in answers.request.topics for part in topic.partitions)


def commits_more_than_a_batch(answers: Answers) -> bool:
    """Each partition is a separate record, with the names of its group and topic: all are one batch."""
    request = answers.request
    names = (len(request.group_id) + len(topic.name) for topic in request.topics for _ in topic.partitions)
    return sum(names) > GREATEST_BATCH


def names_a_strategy_twice(answers: Answers) -> bool:
    """In other states of the group it never answers."""
    return has_a_doubled_strategy(answers.request)


def marks_with_no_epoch(answers: Answers) -> bool:
    return any(marker.producer_epoch < 0 or marker.transaction_version < 0 for marker in answers.request.markers)


def has_an_impossible_topology(answers: Answers) -> bool:
    """It collects what is named twice in maps that reject it, and looks up indexes that don't exist."""
    request = answers.request
    if is_named_twice(tag.key for tag in request.client_tags or ()):
        return True
    if request.topology is None:
        return False
    subtopologies = request.topology.subtopologies
    return (
        request.topology.epoch < 0
        or is_named_twice(one.subtopology_id for one in subtopologies)
        or any(map(is_impossible, subtopologies))
    )


def is_impossible(subtopology: Any) -> bool:
    """True if an internal topic or a config is named twice, or an index points beyond its list."""
    internal = (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics)
    lists = ("source_topics", "source_topic_regex", "repartition_source_topics")
    return (
        any(
            is_named_twice(topic.name for topic in getattr(subtopology, kind))
            for kind in ("repartition_source_topics", "state_changelog_topics")
        )
        or any(is_named_twice(config.key for config in topic.topic_configs) for topic in internal)
        or any(
            not 0 <= index < len(getattr(subtopology, kind))
            for group in subtopology.copartition_groups
            for kind in lists
            for index in getattr(group, kind)
        )
    )


def is_named_twice(names: Iterable[str]) -> bool:
    return any(count > 1 for count in Counter(names).values())


def names_an_owner_without_a_type(answers: Answers) -> bool:
    return bool(answers.request.owner_principal_name) and answers.request.owner_principal_type is None


NO_ISOLATION: Final = Failure("an isolation level that there is not", is_of_no_isolation)
FAILURES: Final[Mapping[str, tuple[Failure, ...]]] = {
    "FetchRequest": (
        NO_ISOLATION,
        Failure("a size below 0", has_a_negative_size),
        Failure("a session id at an end of an int32", has_a_session_at_an_end),
        Failure("a topic without an id beside others", has_no_id_beside_others),
    ),
    "ListOffsetsRequest": (NO_ISOLATION,),
    "JoinGroupRequest": (Failure("a strategy that is named twice", names_a_strategy_twice),),
    "WriteTxnMarkersRequest": (Failure("a producer epoch or transaction version below 0", marks_with_no_epoch),),
    "CreateDelegationTokenRequest": (Failure("an owner without a type", names_an_owner_without_a_type),),
    "ProduceRequest": (Failure("a batch that is none", has_an_odd_batch),),
    "IncrementalAlterConfigsRequest": (Failure("an operation that there is not", has_no_operation),),
    "OffsetCommitRequest": (Failure("more offsets than a batch can hold", commits_more_than_a_batch),),
    "OffsetFetchRequest": (Failure("an epoch without a member", names_an_epoch_and_no_member),),
    "MetadataRequest": (Failure("a topic with neither name nor id", names_no_topic),),
    "ShareFetchRequest": (
        Failure("a group without a name", is_of_a_group_without_a_name),
        Failure("a topic id that is not known", names_an_unknown_id),
        Failure("an acquire mode that there is not", acquires_in_no_mode),
    ),
    "StreamsGroupHeartbeatRequest": (Failure("a topology or client tags that cannot be", has_an_impossible_topology),),
    "DeleteGroupsRequest": (Failure("a share group without the state of any partition", deletes_a_group_here),),
    "AlterShareGroupOffsetsRequest": (Failure("a partition below 0", alters_what_is_not),),
    "DescribeShareGroupOffsetsRequest": (Failure("a group, topic or partition that cannot be", describes_what_is_not),),
}
