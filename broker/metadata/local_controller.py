"""The controller in this process: decides, writes to the metadata log, and answers when its records are committed.

It decides on a state of its own, which is ahead of the image by its uncommitted records. When a write fails, it throws
that state away, and begins again with the records that are committed or may still be. It imports what decides on a
client's request with the first of its kind, as its handler. Source: Kafka's QuorumController.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from broker.clock import Clock
from broker.metadata.deciding import LongDecisions, is_long
from broker.metadata.duty_timer import DutyTimer
from broker.metadata.led_log import LedLog
from coordinator.cluster.brokers.activation import abort_record, activation_records, controller_records
from coordinator.cluster.brokers.heartbeat import broker_heartbeat
from coordinator.cluster.brokers.registration import register_broker, unregister_broker
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.decided import MAX_RECORDS, Decided
from coordinator.cluster.duties import Duties
from coordinator.cluster.image import METADATA_VERSION, Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.security.mutation_quota import Charge, unlimited
from coordinator.cluster.topics.names import EVERYTHING
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

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

A = TypeVar("A")

OWN_STOP_MS: Final = 5_000
"""How long the stop of this node waits for other brokers' heartbeats, of which there is one each two seconds."""

OWN_STOP_POLL_MS: Final = 50


class LocalController:
    """A `coordinator.cluster.controller.Controller` over a log that this node leads; docstrings are there."""

    def __init__(
        self,
        log: LedLog,
        loader: MetadataLoader,
        options: ClusterOptions,
        configs: ConfigRules,
        new_uuid: Callable[[], Uuid],
        on_failure: Callable[[KafkaError], None],
        clock: Clock,
    ) -> None:
        """`on_failure` is called once when the controller cannot write any more."""
        self._log = log
        self._loader = loader
        self._options = options
        self._configs = configs
        self._new_uuid = new_uuid
        self._on_failure = on_failure
        self._clock = clock
        self._state = loader.image.copy()
        self._sessions = BrokerSessions(options.broker_session_timeout_ms, options.own_broker_id)
        duties = Duties(options, configs, self._sessions, clock.now_ms)
        self._long_decisions = LongDecisions()
        busy = self._long_decisions
        self._timer = DutyTimer(duties, clock, lambda: self._state, self._write_soon, lambda: busy.is_busy)
        log.on_failure = self._renounce

    def activate(self, bootstrap: Callable[[], Sequence[MetadataRecord]]) -> None:
        """Writes the records of a new controller, before any request; `bootstrap` gives those of a new cluster."""
        if self._loader.in_transaction:
            self._write([abort_record()])
        if METADATA_VERSION not in self._state.features:
            self._write(activation_records(self._state, bootstrap(), self._options.min_insync_replicas))
        options = self._options
        self._write(controller_records(self._state, options.node_id, self._new_uuid(), options.controller_listeners))
        if not options.has_broker:  # else its registration follows, and is committed with them
            self._log.commit_soon()
        self._sessions.begin(self._state, self._clock.monotonic_ms())
        self._timer.begin()

    @property
    def has_renounced(self) -> bool:
        return self._log.failed is not None

    def on_behalf_of(self, requester: Requester) -> LocalController:
        return self

    async def stop(self) -> None:
        """Does nothing by itself any more."""
        self._timer.stop()
        self._long_decisions.stop()

    def _renounce(self, error: KafkaError) -> None:
        """Goes back to the last committed state, since later records may never be committed."""
        self._state = self._loader.image.copy()
        self._timer.stop()
        self._on_failure(error)

    def _revert(self) -> None:
        """Goes back to the state of the log, after a write that failed halfway."""
        self._state = self._loader.image.copy()
        for batch in self._log.uncommitted:
            for record in batch.records:
                self._state.apply(record)
            self._state.offset, self._state.epoch = batch.last_offset, batch.epoch

    def _write(self, records: Sequence[MetadataRecord]) -> int:
        """Applies and appends the records, in batches of MAX_RECORDS, and returns the offset behind them. Raises
        KafkaError: then the batch that failed has left no trace, and no batch follows it."""
        end_offset = self._log.end_offset
        for start in range(0, len(records), MAX_RECORDS):
            batch = records[start : start + MAX_RECORDS]
            level = self._state.metadata_version
            try:
                for record in batch:
                    self._state.apply(record)
                end_offset = self._log.append(batch, level)
            except Exception:
                self._revert()
                raise
            self._state.offset, self._state.epoch = end_offset - 1, self._log.epoch
        return end_offset

    def _write_soon(self, records: Sequence[MetadataRecord]) -> None:
        self._write(records)
        self._log.commit_soon()

    async def _decide(
        self,
        decision: Callable[[Image], Decided[A]],
        request: object = None,
        then: Callable[[A], None] = lambda response: None,
    ) -> A:
        """Decides, applies and appends, and returns the answer once all records that it depends on are committed. A
        thread decides on a `request` of many entries. `then` is called before, with the state that has them. Raises
        NOT_CONTROLLER once this one has renounced."""
        await self._long_decisions.over()
        self._check_active()
        if request is not None and is_long(request):
            state = self._state
            records, response = await self._long_decisions.make(lambda: decision(state))
            self._check_active()
        else:
            records, response = decision(self._state)
        end_offset = self._write(records)
        then(response)
        await self._log.committed(end_offset)
        return response

    def _check_active(self) -> None:
        if self._log.failed is not None:
            message = f"this controller has renounced: {self._log.failed.message}"
            raise KafkaError(ErrorCode.NOT_CONTROLLER, message)

    async def write(self, records: Sequence[MetadataRecord]) -> None:
        """Appends records that others decided on: ACLs, SCRAM credentials, quotas, delegation tokens."""
        await self._decide(lambda _: Decided(records, None))

    async def create_topics(
        self, request: CreateTopicsRequest, describable: Container[str] = EVERYTHING, charge: Charge = unlimited
    ) -> CreateTopicsResponse:
        from coordinator.cluster.topics.create import create_topics

        return await self._decide(
            lambda state: create_topics(
                state, request, self._options, self._configs, self._new_uuid, describable, charge
            ),
            request,
        )

    async def delete_topics(
        self,
        request: DeleteTopicsRequest,
        version: int,
        deletable: Container[str] = EVERYTHING,
        describable: Container[str] = EVERYTHING,
        charge: Charge = unlimited,
    ) -> DeleteTopicsResponse:
        from coordinator.cluster.topics.delete import delete_topics

        return await self._decide(
            lambda state: delete_topics(state, request, self._options, version, deletable, describable, charge), request
        )

    async def create_partitions(
        self, request: CreatePartitionsRequest, charge: Charge = unlimited
    ) -> CreatePartitionsResponse:
        from coordinator.cluster.topics.create_partitions import create_partitions

        return await self._decide(lambda state: create_partitions(state, request, charge), request)

    async def alter_configs(self, request: AlterConfigsRequest, broker_id: int | None = None) -> AlterConfigsResponse:
        from coordinator.cluster.configs.alter import alter_configs

        return await self._decide(lambda state: alter_configs(state, request, self._configs, broker_id), request)

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, broker_id: int | None = None
    ) -> IncrementalAlterConfigsResponse:
        from coordinator.cluster.configs.alter import incremental_alter_configs

        return await self._decide(
            lambda state: incremental_alter_configs(state, request, self._configs, broker_id), request
        )

    async def alter_client_quotas(
        self, request: AlterClientQuotasRequest, resolvable: Container[str]
    ) -> AlterClientQuotasResponse:
        from coordinator.cluster.security.client_quotas import alter_client_quotas

        return await self._decide(lambda state: alter_client_quotas(state, request, resolvable), request)

    async def alter_user_scram_credentials(
        self, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        from coordinator.cluster.security.scram_credentials import alter_user_scram_credentials

        return await self._decide(lambda state: alter_user_scram_credentials(state, request), request)

    async def create_acls(self, request: CreateAclsRequest) -> CreateAclsResponse:
        from coordinator.cluster.security.acl_requests import create_acls

        return await self._decide(lambda state: create_acls(state, request, self._new_uuid), request)

    async def delete_acls(self, request: DeleteAclsRequest, version: int) -> DeleteAclsResponse:
        from coordinator.cluster.security.acl_requests import delete_acls

        return await self._decide(lambda state: delete_acls(state, request, version), request)

    async def create_delegation_token(
        self, request: CreateDelegationTokenRequest, requester: str
    ) -> CreateDelegationTokenResponse:
        from coordinator.cluster.security.delegation_tokens import create_delegation_token

        options, now_ms = self._options.tokens, self._clock.now_ms()
        return await self._decide(
            lambda state: create_delegation_token(state, request, requester, options, now_ms, self._new_uuid)
        )

    async def renew_delegation_token(
        self, request: RenewDelegationTokenRequest, requester: str
    ) -> RenewDelegationTokenResponse:
        from coordinator.cluster.security.delegation_tokens import renew_delegation_token

        options, now_ms = self._options.tokens, self._clock.now_ms()
        return await self._decide(lambda state: renew_delegation_token(state, request, requester, options, now_ms))

    async def expire_delegation_token(
        self, request: ExpireDelegationTokenRequest, requester: str
    ) -> ExpireDelegationTokenResponse:
        from coordinator.cluster.security.delegation_tokens import expire_delegation_token

        options, now_ms = self._options.tokens, self._clock.now_ms()
        return await self._decide(lambda state: expire_delegation_token(state, request, requester, options, now_ms))

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        from coordinator.cluster.partitions.elect_leaders import elect_leaders

        return await self._decide(lambda state: elect_leaders(state, request, self._configs), request)

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        from coordinator.cluster.partitions.reassignments import alter_partition_reassignments

        return await self._decide(lambda state: alter_partition_reassignments(state, request, self._configs), request)

    async def update_features(self, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
        from coordinator.cluster.brokers.update_features import update_features

        return await self._decide(
            lambda state: update_features(state, request, self._options.min_insync_replicas), request
        )

    async def unregister_broker(self, request: UnregisterBrokerRequest) -> None:
        broker_id, own_id = request.broker_id, self._options.own_broker_id
        await self._decide(
            lambda state: unregister_broker(state, broker_id, own_id, self._configs),
            then=lambda _: self._sessions.forget(broker_id),
        )

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        await self._long_decisions.over()
        broker_id, now_ms = request.broker_id, self._clock.monotonic_ms()
        is_live = self._sessions.is_live(self._state, broker_id, now_ms)
        before = self._state.brokers.get(broker_id)
        controller_id = None if self._options.has_broker else self._options.node_id

        def registered(response: BrokerRegistrationResponse) -> None:
            if before is None or before.epoch != response.broker_epoch:
                self._sessions.end(broker_id)
            self._sessions.registered(broker_id, self._state.offset)
            if broker_id == self._options.own_broker_id:
                self._sessions.heard(broker_id, response.broker_epoch, self._state.offset, now_ms)
            self._timer.arm()

        return await self._decide(
            lambda state: register_broker(state, request, self._configs, is_live=is_live, controller_id=controller_id),
            then=registered,
        )

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        await self._long_decisions.over()
        broker_id, now_ms = request.broker_id, self._clock.monotonic_ms()
        is_stopping = self._sessions.is_stopping(broker_id)

        def heard(response: BrokerHeartbeatResponse) -> None:
            self._sessions.heard(broker_id, request.broker_epoch, request.current_metadata_offset, now_ms)
            broker = self._state.brokers[broker_id]
            if response.should_shut_down:
                self._sessions.end(broker_id)
            elif is_stopping or (request.want_shut_down and broker.in_controlled_shutdown and not broker.fenced):
                self._sessions.stops(broker_id, self._state.offset)

        if broker_id == self._options.own_broker_id and request.want_shut_down:
            await self._let_others_read(broker_id)
        is_own = broker_id == self._options.own_broker_id  # which has waited for them here
        return await self._decide(
            lambda state: broker_heartbeat(
                state,
                request,
                self._configs,
                self._sessions.registered_at(broker_id),
                may_stop=is_own or self._sessions.may_stop(state, broker_id),
                is_stopping=is_stopping,
            ),
            then=heard,
        )

    async def _let_others_read(self, broker_id: int) -> None:
        """Waits until the other brokers have read who leads in place of this one: with it goes who could tell them."""
        from broker.peers.waiting import pause

        deadline_ms = self._clock.monotonic_ms() + OWN_STOP_MS
        while not self._sessions.may_stop(self._state, broker_id) and self._clock.monotonic_ms() < deadline_ms:
            await pause(self._clock, OWN_STOP_POLL_MS)

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        from coordinator.cluster.partitions.alter_partition import alter_partition

        return await self._decide(lambda state: alter_partition(state, request, self._configs), request)

    async def register_controller(self, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
        from coordinator.cluster.brokers.controller_registration import register_controller

        return await self._decide(lambda state: register_controller(state, request))

    async def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        from coordinator.cluster.brokers.assign_directories import assign_replicas_to_dirs

        return await self._decide(lambda state: assign_replicas_to_dirs(state, request, self._configs), request)

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        from coordinator.cluster.allocate_producer_ids import allocate_producer_ids

        return await self._decide(lambda state: allocate_producer_ids(state, request))
