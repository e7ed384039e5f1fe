"""ListPartitionReassignments (46): lists the ongoing reassignments of partitions (KIP-455)."""

from __future__ import annotations

from broker.exchange.authorisation import DESCRIBE_CLUSTER
from broker.requests.api import Api, Entries
from broker.requests.call import HostCall
from broker.requests.rules import whole
from coordinator.cluster.partitions import reassignments
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def list_partition_reassignments(
    call: HostCall[ListPartitionReassignmentsRequest],
) -> ListPartitionReassignmentsResponse:
    return reassignments.list_partition_reassignments(call.host.image, call.request)


API = Api(
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    list_partition_reassignments,
    authorize=whole(DESCRIBE_CLUSTER),
    entries=(Entries("topics", "topics"),),
)
