"""DeleteShareGroupOffsets (92)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, uuid


@message(ApiKey.DELETE_SHARE_GROUP_OFFSETS)
class DeleteShareGroupOffsetsRequest:
    """Deletes an empty share group's offsets of topics (KIP-932)."""

    group_id: str = wire()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = wire()


@struct
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = wire()


@message(ApiKey.DELETE_SHARE_GROUP_OFFSETS)
class DeleteShareGroupOffsetsResponse:
    """The error code for each topic."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = wire()


@struct
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = wire()
    topic_id: uuid = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
