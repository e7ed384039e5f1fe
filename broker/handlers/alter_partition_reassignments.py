"""AlterPartitionReassignments (45): moves partitions to other brokers (KIP-455).

v1 may forbid a change of the replication factor (KIP-860). On one node there is only this broker to move to.
"""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

API = Api(
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    by_controller,
    of_cluster(ALTER_CLUSTER),
)
