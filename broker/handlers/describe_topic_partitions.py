"""DescribeTopicPartitions (75): describes topics' partitions page by page, with eligible leader replicas (KIP-966)."""

from __future__ import annotations

from broker.exchange.authorisation import DESCRIBE_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.operations import TOPIC_OPERATIONS
from coordinator.cluster.topics import describe as describe_topics
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse


async def describe_topic_partitions(call: Call[DescribeTopicPartitionsRequest]) -> DescribeTopicPartitionsResponse:
    listener = call.context.listener
    limit = call.broker.config.max_request_partition_size_limit
    return describe_topics.describe_topic_partitions(
        call.broker.image, call.request, listener, max_partitions=limit, operations=TOPIC_OPERATIONS
    )


REQUIRES = by_handler(DESCRIBE_TOPIC)
API = Api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, describe_topic_partitions, REQUIRES)
