"""Lists whose order says nothing."""

from __future__ import annotations

UNORDERED = frozenset(
    {
        "TopicProduceResponse.partition_responses",
        "ApiVersionsResponse.supported_features",
        "ApiVersionsResponse.finalized_features",
        "ListOffsetsResponse.topics",
        "ListOffsetsTopicResponse.partitions",
        "DescribeConfigsResult.configs",
        "ListConfigResourcesResponse.config_resources",
        "MetadataResponse.topics",
        "DeleteTopicsResponse.responses",
        "DescribeLogDirsResult.topics",
        "DescribeLogDirsTopic.partitions",
        "AlterReplicaLogDirsResponse.results",
        "AlterReplicaLogDirTopicResult.partitions",
        "CreatePartitionsResponse.results",
        "ElectLeadersResponse.replica_election_results",
        "ReplicaElectionResult.partition_result",
        "DeleteRecordsResponse.topics",
        "DeleteRecordsTopicResult.partitions",
        "JoinGroupResponse.members",
        "DescribedGroup.members",
        "DescribeGroupsResponse.groups",
        "DeleteGroupsResponse.results",
        "ListGroupsResponse.groups",
        "OffsetFetchResponse.topics",
        "OffsetFetchResponseTopic.partitions",
        "OffsetFetchResponseGroup.topics",
        "OffsetFetchResponseTopics.partitions",
        "ShareGroupDescribeResponse.groups",
        "AlterShareGroupOffsetsResponse.responses",
        "DeleteShareGroupOffsetsResponse.responses",
        "DescribeShareGroupOffsetsResponseGroup.topics",
    }
)
"""Lists that Apache Kafka makes of a hash map."""
