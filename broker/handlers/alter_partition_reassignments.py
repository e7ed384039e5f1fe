"""AlterPartitionReassignments (45): moves partitions to other brokers (KIP-455).

v1 may forbid a change of the replication factor (KIP-860). On a single node, this broker is the only possible target.
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

API = Api(
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    answered_by=CONTROLLER,
    authorize=whole(ALTER_CLUSTER),
)
