"""The controller of a quorum elsewhere: it gets the broker's own requests directly, over connections on which that is
known, and those of clients in Envelopes. A `coordinator.cluster.controller.Controller`; docstrings are there.

Source: Kafka's NodeToControllerChannelManager, AutoTopicCreationManager, RPCProducerIdManager, AssignmentsManager.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, TypeVar

from broker.metadata.controllers import Controllers
from broker.metadata.forwarding import FORWARD_MS, forward
from coordinator.cluster.requester import Requester
from coordinator.cluster.security.mutation_quota import Charge, unlimited
from coordinator.cluster.topics.names import EVERYTHING
from protocol.codec import decode
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
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
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from protocol.schema import Kind, fields_of, identity

R = TypeVar("R")

ALLOCATE_MS: Final = 60_000
"""How long a block of producer ids may take; clients that wait for one retry meanwhile."""


class RemoteController:
    """The controller that leads the quorum at the time of a request, whichever it is."""

    def __init__(self, controllers: Controllers, session_ms: int, requester: Requester | None = None) -> None:
        """`session_ms`: broker.session.timeout.ms, after which a heartbeat is of no use any more; `requester` is the
        client for whom it is asked, None where this broker asks for itself."""
        self._controllers = controllers
        self._session_ms = session_ms
        self._requester = requester

    @property
    def has_renounced(self) -> bool:
        return False

    async def forward(self, request: object, version: int, requester: Requester) -> bytes:
        """Returns the body of the response to a client's request. Raises KafkaError."""
        return await forward(self._controllers, request, version, requester)

    def on_behalf_of(self, requester: Requester) -> RemoteController:
        return RemoteController(self._controllers, self._session_ms, requester)

    def _of(self, principal: str) -> RemoteController:
        """Returns the controller as a user asks it, of whom no more is known."""
        kind, _, name = principal.partition(":")
        return self.on_behalf_of(Requester(kind, name, None, "127.0.0.1"))

    async def _forwarded(self, request: object, response: type[R], version: int | None = None) -> R:
        """Sends a request of the APIs that clients have too: in an Envelope for a client, else as this broker's own."""
        version = identity(type(request)).versions.last if version is None else version
        if self._requester is None:
            return await self._controllers.send(request, response, FORWARD_MS, code_of_all, max_version=version)
        try:
            return decode(response, version, await forward(self._controllers, request, version, self._requester))[0]
        except ProtocolError as error:
            message = f"the controller's answer cannot be read: {error}"
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error

    async def _direct(self, request: object, response: type[R], timeout_ms: int, code_of: Callable[[R], int]) -> R:
        """Sends a request of the APIs between brokers and controllers. Raises the KafkaError that answers it."""
        answer = await self._controllers.send(request, response, timeout_ms, code_of)
        code = error_code(code_of(answer))
        if code:
            raise KafkaError(code)
        return answer

    async def create_topics(
        self, request: CreateTopicsRequest, describable: Container[str] = EVERYTHING, charge: Charge = unlimited
    ) -> CreateTopicsResponse:
        return await self._forwarded(request, CreateTopicsResponse)

    async def delete_topics(
        self,
        request: DeleteTopicsRequest,
        version: int,
        deletable: Container[str] = EVERYTHING,
        describable: Container[str] = EVERYTHING,
        charge: Charge = unlimited,
    ) -> DeleteTopicsResponse:
        return await self._forwarded(request, DeleteTopicsResponse, version)

    async def create_partitions(
        self, request: CreatePartitionsRequest, charge: Charge = unlimited
    ) -> CreatePartitionsResponse:
        return await self._forwarded(request, CreatePartitionsResponse)

    async def alter_configs(self, request: AlterConfigsRequest, broker_id: int | None = None) -> AlterConfigsResponse:
        return await self._forwarded(request, AlterConfigsResponse)

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, broker_id: int | None = None
    ) -> IncrementalAlterConfigsResponse:
        return await self._forwarded(request, IncrementalAlterConfigsResponse)

    async def alter_client_quotas(
        self, request: AlterClientQuotasRequest, resolvable: Container[str]
    ) -> AlterClientQuotasResponse:
        return await self._forwarded(request, AlterClientQuotasResponse)

    async def alter_user_scram_credentials(
        self, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        return await self._forwarded(request, AlterUserScramCredentialsResponse)

    async def create_acls(self, request: CreateAclsRequest) -> CreateAclsResponse:
        return await self._forwarded(request, CreateAclsResponse)

    async def delete_acls(self, request: DeleteAclsRequest, version: int) -> DeleteAclsResponse:
        return await self._forwarded(request, DeleteAclsResponse, version)

    async def create_delegation_token(
        self, request: CreateDelegationTokenRequest, requester: str
    ) -> CreateDelegationTokenResponse:
        return await self._of(requester)._forwarded(request, CreateDelegationTokenResponse)

    async def renew_delegation_token(
        self, request: RenewDelegationTokenRequest, requester: str
    ) -> RenewDelegationTokenResponse:
        return await self._of(requester)._forwarded(request, RenewDelegationTokenResponse)

    async def expire_delegation_token(
        self, request: ExpireDelegationTokenRequest, requester: str
    ) -> ExpireDelegationTokenResponse:
        return await self._of(requester)._forwarded(request, ExpireDelegationTokenResponse)

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        return await self._forwarded(request, ElectLeadersResponse)

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        return await self._forwarded(request, AlterPartitionReassignmentsResponse)

    async def update_features(self, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
        return await self._forwarded(request, UpdateFeaturesResponse)

    async def unregister_broker(self, request: UnregisterBrokerRequest) -> None:
        answer = await self._forwarded(request, UnregisterBrokerResponse)
        if answer.error_code:
            raise KafkaError(error_code(answer.error_code), answer.error_message)

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        return await self._direct(
            request, BrokerRegistrationResponse, self._session_ms, lambda answer: answer.error_code
        )

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        return await self._direct(request, BrokerHeartbeatResponse, self._session_ms, lambda answer: answer.error_code)

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Asks for other in-sync replicas. Raises KafkaError where nobody knows what became of that, or this broker may
        not ask: STALE_BROKER_EPOCH, CLUSTER_AUTHORIZATION_FAILED."""
        return await self._direct(request, AlterPartitionResponse, self._session_ms, lambda answer: answer.error_code)

    async def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        return await self._direct(
            request, AssignReplicasToDirsResponse, self._session_ms, lambda answer: answer.error_code
        )

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        answer = await self._direct(request, AllocateProducerIdsResponse, ALLOCATE_MS, lambda answer: answer.error_code)
        if answer.producer_id_start < 0 or answer.producer_id_len <= 0:
            message = f"the controller gave {answer.producer_id_len} producer ids from {answer.producer_id_start} on"
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        return answer

    async def register_controller(self, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
        return await self._direct(
            request, ControllerRegistrationResponse, self._session_ms, lambda answer: answer.error_code
        )


def code_of_all(response: object) -> int:
    """Returns NOT_CONTROLLER where a response has that for anything, else NONE: many responses have no error code for
    all of the request (NodeToControllerRequestThread, by AbstractResponse.errorCounts)."""
    return ErrorCode.NOT_CONTROLLER if has_code(response, ErrorCode.NOT_CONTROLLER) else ErrorCode.NONE


def has_code(message: object, code: ErrorCode) -> bool:
    """True where a message, or a part of it, has this error code."""
    for name, kind, _ in fields_of(type(message)):
        value = getattr(message, name)
        if name == "error_code" and value == code:
            return True
        if is_list_of_structs(kind) and any(has_code(item, code) for item in value or ()):
            return True
    return False


def is_list_of_structs(kind: Kind) -> bool:
    return kind.items is not None and kind.items.struct is not None
