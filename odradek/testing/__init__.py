"""Real brokers inside a test suite (docs/testing.md).

    from odradek.testing import Broker

    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        ...  # a client with bootstrap.servers = broker.bootstrap

`Broker` and `Cluster` start processes; `ExternalBroker` is a broker that is already running. `Acl` is an access control
entry. This package needs only the standard library, and imports no module of the broker into a test's process.
"""

from odradek.testing.aio import AsyncBroker
from odradek.testing.broker import Broker
from odradek.testing.cluster import AsyncCluster, Cluster
from odradek.testing.controlled import ControlledBroker, ExternalBroker
from odradek.testing.errors import BrokerError, ControlError, RequestRefused, WaitTimeout
from odradek.testing.faults import Fault
from odradek.testing.security import Acl
from odradek.testing.served import ServedBroker
from odradek.testing.views import Group, GroupOffset, Member, Partition, Record, RecordedRequest

__all__ = [
    "Acl",
    "AsyncBroker",
    "AsyncCluster",
    "Broker",
    "BrokerError",
    "Cluster",
    "ControlError",
    "ControlledBroker",
    "ExternalBroker",
    "Fault",
    "Group",
    "GroupOffset",
    "Member",
    "Partition",
    "Record",
    "RecordedRequest",
    "RequestRefused",
    "ServedBroker",
    "WaitTimeout",
]
