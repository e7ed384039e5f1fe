"""Who decides for the cluster, as brokers see it: one protocol, whether the controller is in this process or elsewhere.

Every coroutine returns once what was decided is committed and in this broker's image, and raises KafkaError: what the
controller answers for the whole request, or that there is none. Source: org.apache.kafka.controller.Controller.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Protocol

from coordinator.cluster.security.mutation_quota import Charge, unlimited
from coordinator.cluster.topics.names import EVERYTHING

if TYPE_CHECKING:
    from coordinator.cluster.requester import Requester
    from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
    from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
    from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
    from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
    from protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )
    from protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
    )
    from protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
    from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
    from protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
    from protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
    from protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
    from protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
    from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
    from protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
    from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
    from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
    from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
    from protocol.messages.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )
    from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
    from protocol.messages.unregister_broker import UnregisterBrokerRequest
    from protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


class Controller(Protocol):
    """The requests that brokers forward for clients, and those that they send for themselves."""

    @property
    def has_renounced(self) -> bool:
        """Whether the controller in this process decides nothing any more: its answers are not the cluster's. False of
        one elsewhere, which answers for itself."""
        ...

    def on_behalf_of(self, requester: Requester) -> Controller:
        """Returns the controller as it is asked for a client, who has to be authorised there. The one in this process
        does not ask: who takes the client's request has done that."""
        ...

    async def create_topics(
        self, request: CreateTopicsRequest, describable: Container[str] = EVERYTHING, charge: Charge = unlimited
    ) -> CreateTopicsResponse:
        """CreateTopics, of topics that may be created; `describable` are those whose configs may be told. `charge`
        takes what is made out of the asker's quota; a controller elsewhere knows the quotas itself."""
        ...

    async def delete_topics(
        self,
        request: DeleteTopicsRequest,
        version: int,
        deletable: Container[str] = EVERYTHING,
        describable: Container[str] = EVERYTHING,
        charge: Charge = unlimited,
    ) -> DeleteTopicsResponse:
        """DeleteTopics, with what the asker may do, since topics by id have no name before they are looked up."""
        ...

    async def create_partitions(
        self, request: CreatePartitionsRequest, charge: Charge = unlimited
    ) -> CreatePartitionsResponse:
        """CreatePartitions, of topics that may be altered."""
        ...

    async def alter_configs(self, request: AlterConfigsRequest, broker_id: int | None = None) -> AlterConfigsResponse:
        """AlterConfigs, of resources that may be altered. `broker_id` is of the broker that a client asked, which takes
        changes of no other broker's options; None where it asked the controller, or a broker forwards."""
        ...

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, broker_id: int | None = None
    ) -> IncrementalAlterConfigsResponse:
        """IncrementalAlterConfigs, of resources that may be altered and are in the metadata (no broker loggers);
        `broker_id` as with AlterConfigs."""
        ...

    async def alter_client_quotas(
        self, request: AlterClientQuotasRequest, resolvable: Container[str]
    ) -> AlterClientQuotasResponse:
        """AlterClientQuotas; `resolvable` has the addresses and hosts in it that exist."""
        ...

    async def alter_user_scram_credentials(
        self, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        """AlterUserScramCredentials."""
        ...

    async def create_acls(self, request: CreateAclsRequest) -> CreateAclsResponse:
        """CreateAcls."""
        ...

    async def delete_acls(self, request: DeleteAclsRequest, version: int) -> DeleteAclsResponse:
        """DeleteAcls, whose filters mean less in version 0."""
        ...

    async def create_delegation_token(
        self, request: CreateDelegationTokenRequest, requester: str
    ) -> CreateDelegationTokenResponse:
        """CreateDelegationToken, which the requester, a principal, may ask for."""
        ...

    async def renew_delegation_token(
        self, request: RenewDelegationTokenRequest, requester: str
    ) -> RenewDelegationTokenResponse:
        """RenewDelegationToken."""
        ...

    async def expire_delegation_token(
        self, request: ExpireDelegationTokenRequest, requester: str
    ) -> ExpireDelegationTokenResponse:
        """ExpireDelegationToken."""
        ...

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """ElectLeaders."""
        ...

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """AlterPartitionReassignments."""
        ...

    async def update_features(self, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
        """UpdateFeatures."""
        ...

    async def unregister_broker(self, request: UnregisterBrokerRequest) -> None:
        """UnregisterBroker."""
        ...

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        """BrokerRegistration: a broker that starts, fenced."""
        ...

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        """BrokerHeartbeat: a broker that lives, and whether it would lead, or stop."""
        ...

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """AlterPartition: the in-sync replicas that a leader would have."""
        ...

    async def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        """AssignReplicasToDirs: where a broker has its replicas."""
        ...

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        """AllocateProducerIds: a block of producer ids for a broker."""
        ...

    async def register_controller(self, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
        """ControllerRegistration: another controller, of the same quorum."""
        ...
