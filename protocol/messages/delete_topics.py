"""DeleteTopics (20)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, uuid


@message(ApiKey.DELETE_TOPICS)
class DeleteTopicsRequest:
    """Topics to delete, by name or id."""

    topics: list[DeleteTopicState] = wire(versions="6+", default=IMPLICIT)  # KIP-516
    topic_names: list[str] = wire(versions="0-5", default=IMPLICIT)
    timeout_ms: int32 = wire()


@struct
class DeleteTopicState:
    """A topic by name, or by id with a null name."""

    name: str | None = wire(nullable="0+", default=None)
    topic_id: uuid = wire()


@message(ApiKey.DELETE_TOPICS)
class DeleteTopicsResponse:
    """The error code for each topic."""

    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-124
    responses: list[DeletableTopicResult] = wire()


@struct
class DeletableTopicResult:
    """A topic. The name is null if the id is unknown or the client may not describe the topic."""

    name: str | None = wire(nullable="6+")
    topic_id: uuid = wire(versions="6+", default=IMPLICIT)  # KIP-516
    error_code: int16 = wire()
    error_message: str | None = wire(versions="5+", nullable="5+", default=None)  # KIP-599
