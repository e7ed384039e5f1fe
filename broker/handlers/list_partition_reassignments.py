"""ListPartitionReassignments (46): lists the ongoing reassignments of partitions (KIP-455)."""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import DESCRIBE_CLUSTER
from coordinator.cluster.partitions import reassignments
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def list_partition_reassignments(
    call: Call[ListPartitionReassignmentsRequest],
) -> ListPartitionReassignmentsResponse:
    return reassignments.list_partition_reassignments(call.host.image, call.request)


API = Api(
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    list_partition_reassignments,
    answered_by=CONTROLLER,
    authorize=whole(DESCRIBE_CLUSTER),
    entries=(Entries("topics", "topics"),),
)
