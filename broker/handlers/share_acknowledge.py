"""ShareAcknowledge (79): acknowledges records of a share group without a fetch (KIP-932).

v1 is the first stable version; v2 adds renewal of locks, and returns how long they last (KIP-1222). With epoch -1 it
ends the share session.
"""

from __future__ import annotations

from broker.exchange.authorisation import READ_GROUP, READ_TOPIC, by_handler
from broker.handlers.share_fetch import session_key
from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.share_access import take_unreadable
from broker.share.acknowledging import AcknowledgeRules, Acknowledging, by_topic, code_of, message_of
from broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, PartitionId, SessionKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)


async def share_acknowledge(
    call: Call[ShareAcknowledgeRequest],
) -> ShareAcknowledgeResponse:
    request = call.request
    try:
        key = session_key(call)
        advance_session(call, key)
    except KafkaError as error:
        return ShareAcknowledgeResponse(
            error_code=error.code, error_message=error.message, responses=[], node_endpoints=[]
        )
    acknowledging = Acknowledging()
    acknowledgements = {
        PartitionId(topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    }
    denied = take_unreadable(call, acknowledgements)
    acknowledging.acknowledge(
        call.broker.share_groups, *key, acknowledgements, AcknowledgeRules(call.version, request.is_renew_ack)
    )
    acknowledging.results.update(denied)
    if not acknowledging.is_done:
        await acknowledging.wait()
    return finish(call, key, acknowledging)


def advance_session(call: Call[ShareAcknowledgeRequest], key: SessionKey) -> None:
    """Raises SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH."""
    sessions, epoch = call.broker.share_groups.sessions, call.request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    if epoch == FINAL_EPOCH:
        sessions.find(key)
    else:
        sessions.go_on(key, epoch)


def finish(
    call: Call[ShareAcknowledgeRequest], key: SessionKey, acknowledging: Acknowledging
) -> ShareAcknowledgeResponse:
    groups = call.broker.share_groups
    if call.request.share_session_epoch == FINAL_EPOCH:
        groups.close_session(key)
    return ShareAcknowledgeResponse(
        error_code=0,
        acquisition_lock_timeout_ms=groups.config(key.group_id).share_record_lock_duration_ms,
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[data(*result) for result in partitions])
            for topic_id, partitions in by_topic(acknowledging.results).items()
        ],
        node_endpoints=[],
    )


def data(index: int, error: KafkaError | None) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code_of(error),
        error_message=message_of(error),
        current_leader=LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
    )


API = Api(ShareAcknowledgeRequest, ShareAcknowledgeResponse, share_acknowledge, by_handler(READ_GROUP, READ_TOPIC))
