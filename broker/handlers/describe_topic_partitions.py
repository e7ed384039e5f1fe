"""DescribeTopicPartitions (75): describes topics' partitions page by page, with eligible leader replicas (KIP-966)."""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.operations import topic_operations
from broker.request.authorisation import DESCRIBE_TOPIC, inside
from coordinator.cluster.topics import describe as describe_topics
from protocol.errors import ErrorCode
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse


async def describe_topic_partitions(call: Call[DescribeTopicPartitionsRequest]) -> DescribeTopicPartitionsResponse:
    listener = call.context.listener
    limit = call.broker.config.max_request_partition_size_limit
    work = describe_topics.describe_topic_partitions(
        call.broker.image,
        call.request,
        listener,
        lambda name: call.may(DESCRIBE_TOPIC, name, quiet=not call.request.topics),
        max_partitions=limit,
    )
    turns = call.turns()
    response = await turns.run(work)
    for topic in response.topics:
        await turns.next()
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            topic.is_internal = False
        elif topic.error_code != ErrorCode.INVALID_REQUEST:
            topic.topic_authorized_operations = topic_operations(call, topic.name or "", is_requested=True)
    return response


API = Api(
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    describe_topic_partitions,
    authorize=inside("for each topic; without a list of topics, denied topics are left out", DESCRIBE_TOPIC),
)
