"""The response that rejects a whole request, for any API, derived from the schemas of its two messages.

A response has one error for the whole request; or it repeats the lists of the request, with the error in each entry.
Source: `getErrorResponse` of the classes in org.apache.kafka.common.requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar, cast

from broker.dispatch.api import Api
from coordinator.cluster.rejections import error_message
from protocol.api_key import ApiKey
from protocol.errors import KafkaError
from protocol.schema import fields_of
from protocol.versions import NONE, Versions, parse_versions

E = TypeVar("E")

REPEATED: Final[Mapping[str, tuple[str, ...]]] = {
    "coordinators": ("coordinator_keys",),
    "filter_results": ("filters",),
    "groups": ("groups", "group_ids"),
    "markers": ("markers",),
    "members": ("members",),
    "partition_responses": ("partition_data",),
    "partition_result": ("partitions",),
    "partitions": ("partitions", "partition_data", "partition_indexes"),
    "replica_election_results": ("topic_partitions",),
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "results": ("topics", "resources", "groups_names", "creations", "users"),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results_by_transaction": ("transactions",),
    "topic_results": ("topics",),
    "topics": ("topics",),
    "transaction_states": ("transactional_ids",),
}
"""A list in a response, and the lists of requests that it repeats."""

ERROR_FIELDS: Final = ("error_code", "partition_error_code")
TEXT_KEYS: Final = ("name", "topic", "topic_name", "key", "group_id", "transactional_id")
"""The field of an entry that repeats a text of the request."""
NUMBER_KEYS: Final = ("index", "partition", "partition_index", "partition_id")
"""The field of an entry that repeats the number of a partition."""
OTHER_KEYS: Final = ("topic_id", "producer_id", "resource_type", "resource_name")
"""Fields of an entry that repeat the field of the same name."""

SESSION_ID: Final = "session_id"
"""The field of the whole response that repeats the request."""

UNKNOWN: Final = -1
UNKNOWN_FIELDS: Final = frozenset(
    {"base_offset", "committed_offset", "end_offset", "high_watermark", "low_watermark", "node_id", "port"}
)
"""Numbers that are -1 in a rejection, though their schema's default is 0."""
NULL_FIELDS: Final = frozenset(
    {"active_tasks", "partitions_by_user_endpoint", "protocol_name", "standby_tasks", "warmup_tasks"}
)
"""Texts and lists that are null in a rejection if the version allows it. Others are empty."""

BOTH: Final[Mapping[ApiKey, Versions]] = {
    ApiKey.FETCH: parse_versions("0-12"),
    ApiKey.METADATA: parse_versions("0+"),
    ApiKey.ELECT_LEADERS: parse_versions("0+"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: parse_versions("0+"),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: parse_versions("0+"),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: parse_versions("0+"),
}
"""The versions of APIs whose response repeats the request although it has a top-level error."""

EMPTY: Final[Mapping[ApiKey, Versions]] = {ApiKey.DESCRIBE_LOG_DIRS: parse_versions("0-2")}
"""The versions of APIs that have no place for the error: Apache Kafka answers with an empty response."""


class RejectionBuilder:
    """The version and the error of a response that rejects a request."""

    def __init__(self, version: int, error: KafkaError, *, explains: bool = False) -> None:
        """With `explains` the response has a message, even if the message only repeats the code."""
        self._version = version
        self._code = int(error.code)
        self._message = error.message if explains else error_message(error)

    def response(self, struct: type, request: object, *, repeats: bool) -> object:
        """Returns the response. If it has a field for the error of the whole request, it has no entries, unless
        `repeats`."""
        made = self._with_error(struct, request, repeats=repeats)
        if SESSION_ID in struct.__wire__:  # type: ignore[attr-defined]  # of any message
            setattr(made, SESSION_ID, getattr(request, SESSION_ID))
        return made

    def entry_of(self, struct: type, name: str, item: object) -> object:
        """Returns the entry that repeats an item of the request in a list of the response."""
        items = next(field.kind.items for field in fields_of(struct) if field.name == name)
        assert items is not None
        assert items.struct is not None
        return self.entry(items.struct, item)

    def entry(self, struct: type, item: object) -> object:
        """Returns an entry of the response, which repeats an item of the request."""
        made = self._with_error(struct, item, repeats=False)
        for field in fields_of(struct):
            repeat_key(made, field.name, item)
        return made

    def _with_error(self, struct: type, item: object, *, repeats: bool) -> object:
        made = struct()
        fields = [field for field in fields_of(struct) if self._version in field.wire.versions]
        has_error = any(field.name in ERROR_FIELDS for field in fields)
        for field in fields:
            if field.name in ERROR_FIELDS:
                setattr(made, field.name, self._code)
            elif field.name == "error_message":
                setattr(made, field.name, self._message)
            elif field.name in UNKNOWN_FIELDS:
                setattr(made, field.name, UNKNOWN)
            elif field.name in NULL_FIELDS and self._version in field.wire.nullable:
                setattr(made, field.name, None)
            elif field.kind.items is not None:
                parts = field.kind.items.struct if repeats or not has_error else None
                setattr(made, field.name, [] if parts is None else self._entries(parts, field.name, item))
        return made

    def _entries(self, struct: type, name: str, item: object) -> list[object]:
        """Returns the entries of a list of the response."""
        sources = [getattr(item, source, None) or () for source in REPEATED.get(name, ())]
        return [self.entry(struct, repeated) for source in sources for repeated in source]


def rejected(kind: type[E], version: int, error: KafkaError, item: object) -> E:
    """Returns the entry of a response that rejects an item of the request."""
    return cast(E, RejectionBuilder(version, error).entry(kind, item))


def repeat_key(made: object, name: str, item: object) -> None:
    """Sets a field of an entry if it says which item of the request the entry is about."""
    if isinstance(item, str):
        if name in TEXT_KEYS:
            setattr(made, name, item)
    elif name in NUMBER_KEYS:
        setattr(made, name, partition_number(item))
    elif name in TEXT_KEYS or name in OTHER_KEYS:
        setattr(made, name, getattr(item, name, getattr(made, name)))


def partition_number(item: object) -> int:
    """Returns the number of the partition that an item of a request is about."""
    if isinstance(item, int):
        return item
    return next((getattr(item, name) for name in NUMBER_KEYS if hasattr(item, name)), UNKNOWN)


def rejection(api: Api, request: object, version: int, error: KafkaError) -> object:
    """Returns the response that rejects a whole request."""
    if api.reject is not None:
        return api.reject(request, error)
    if version in EMPTY.get(api.key, NONE):
        return api.response()
    builder = RejectionBuilder(version, error, explains=api.explains)
    return builder.response(api.response, request, repeats=version in BOTH.get(api.key, NONE))
