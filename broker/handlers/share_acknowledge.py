"""ShareAcknowledge (79): acknowledges records of a share group without a fetch (KIP-932).

v1 is the first stable version; v2 adds renewal of locks, and returns their duration (KIP-1222). With epoch -1 it
ends the share session.
"""

from __future__ import annotations

from broker.dispatch.api import SHARE_GROUPS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import in_order, of_group, whole
from broker.handlers.share_fetch import OF_SESSION, acknowledged, session_key
from broker.request.authorisation import READ_GROUP
from broker.share.acknowledging import Acknowledging, by_topic, code_of, message_of
from broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from protocol.types import Uuid


async def share_acknowledge(call: Call[ShareAcknowledgeRequest]) -> ShareAcknowledgeResponse:
    key = session_key(call)
    advance_session(call, key)
    acknowledging = await acknowledged(call, key)
    await acknowledging.wait(call.turns())
    return await finish(call, key, acknowledging)


def advance_session(call: Call[ShareAcknowledgeRequest], key: SessionKey) -> None:
    """Checks the session and its epoch, and advances the epoch. Raises SHARE_SESSION_NOT_FOUND,
    INVALID_SHARE_SESSION_EPOCH."""
    sessions, epoch = call.broker.share_groups.sessions, call.request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    if epoch == FINAL_EPOCH:
        sessions.find(key)
    else:
        sessions.go_on(key, epoch)


async def finish(
    call: Call[ShareAcknowledgeRequest], key: SessionKey, acknowledging: Acknowledging
) -> ShareAcknowledgeResponse:
    groups = call.broker.share_groups
    if call.request.share_session_epoch == FINAL_EPOCH:
        groups.close_session(key)
    topics = await by_topic(acknowledging.results, data, call.turns())
    return ShareAcknowledgeResponse(
        error_code=0,
        acquisition_lock_timeout_ms=groups.config(key.group_id).share_record_lock_duration_ms,
        responses=await call.turns().map(answer, list(topics.items())),
        node_endpoints=[],
    )


def answer(topic: tuple[Uuid, list[PartitionData]]) -> ShareAcknowledgeTopicResponse:
    topic_id, partitions = topic
    return ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)


def data(index: int, error: KafkaError | None) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code_of(error),
        error_message=message_of(error),
        current_leader=LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
    )


API = Api(
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    share_acknowledge,
    authorize=in_order(whole(READ_GROUP, of_group), OF_SESSION),
    protocol=SHARE_GROUPS,
    explains=True,
)
