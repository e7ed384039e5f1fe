"""ElectLeaders (43): elects preferred or any leaders for partitions (KIP-183, KIP-460).

v1 adds unclean elections, v2 is flexible. On one node the leader is the preferred one already.
"""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from coordinator.cluster.decided import error_message
from protocol.errors import KafkaError
from protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


async def elect_leaders(call: HostCall[ElectLeadersRequest]) -> ElectLeadersResponse:
    return await call.host.controller.elect_leaders(call.request)


def refuse(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    """Returns the answer that refuses each election."""
    results = [
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                PartitionResult(partition_id=index, error_code=error.code, error_message=error_message(error))
                for index in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=error.code, replica_election_results=results)


API = Api(ElectLeadersRequest, ElectLeadersResponse, elect_leaders, of_cluster(ALTER_CLUSTER), refuse=refuse)
