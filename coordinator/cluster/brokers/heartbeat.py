"""Decides on BrokerHeartbeat: whether a broker is fenced, may lead, and may stop (KIP-631, KIP-841, KIP-858).

Source: Kafka's BrokerHeartbeatManager.calculateNextBrokerState and ReplicationControlManager.processBrokerHeartbeat.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum

from coordinator.cluster.brokers.info import BrokerRegistration
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.decided import Decided
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.changes import Departure, PartitionChanges, in_sync, leaderless, leads_any
from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord
from protocol.types import Uuid

YES = 1
NO = -1


class BrokerState(Enum):
    """A registered broker as the controller has it: FENCED → UNFENCED → CONTROLLED_SHUTDOWN → SHUTDOWN_NOW."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "in controlled shutdown"
    SHUTDOWN_NOW = "may stop"


def check_broker_epoch(image: Image, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """The broker. Raises KafkaError(STALE_BROKER_EPOCH) where it is not registered, or has registered anew since."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        message = f"No broker registration found for broker id {broker_id}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, message)
    if broker.epoch != broker_epoch:
        message = f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, message)
    return broker


def broker_heartbeat(
    image: Image, request: BrokerHeartbeatRequest, configs: ConfigRules
) -> Decided[BrokerHeartbeatResponse]:
    """The broker's next state, and what follows from it for the partitions. Raises KafkaError(STALE_BROKER_EPOCH)."""
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    before = state_of(broker)
    after = next_state(image, broker, request)
    changes = PartitionChanges(image, configs)
    records: list[MetadataRecord] = []
    if after is not before:
        records += _transition(image, broker, after, changes)
    records += _directories_offline(image, broker, request.offline_log_dirs, changes)
    response = BrokerHeartbeatResponse(
        error_code=ErrorCode.NONE,
        is_caught_up=request.current_metadata_offset >= broker.epoch,
        is_fenced=after in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=after is BrokerState.SHUTDOWN_NOW,
    )
    return Decided(records, response)


def state_of(broker: BrokerRegistration) -> BrokerState:
    """The state of a broker, as its registration has it."""
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def next_state(image: Image, broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> BrokerState:
    """The state that the broker's wish leads to. Who wants to stop leads nothing any more before it may."""
    state = state_of(broker)
    if state is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        may_unfence = not request.want_fence and request.current_metadata_offset >= broker.epoch
        return BrokerState.UNFENCED if may_unfence else BrokerState.FENCED
    if state is BrokerState.UNFENCED and not request.want_shut_down:
        return BrokerState.FENCED if request.want_fence else BrokerState.UNFENCED
    if leads_any(image, broker.broker_id) and not (state is BrokerState.UNFENCED and request.want_fence):
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.SHUTDOWN_NOW


def _transition(
    image: Image, broker: BrokerRegistration, after: BrokerState, changes: PartitionChanges
) -> Iterator[MetadataRecord]:
    broker_id = broker.broker_id
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch)
    if after is BrokerState.UNFENCED:
        change.fenced = NO
        yield change
        yield from changes.updates(leaderless(image), Departure(added=broker_id))
    elif after is BrokerState.CONTROLLED_SHUTDOWN:
        change.in_controlled_shutdown = YES
        yield change
        yield from changes.updates(in_sync(image, broker_id), Departure(removed=broker_id))
    elif not broker.fenced:
        change.fenced = YES
        yield from changes.updates(in_sync(image, broker_id), Departure(removed=broker_id))
        yield change


def _directories_offline(
    image: Image, broker: BrokerRegistration, offline: Collection[Uuid], changes: PartitionChanges
) -> Iterator[MetadataRecord]:
    """Log directories of the broker have failed: it leads nothing that is there, and is registered with the others."""
    failed = [directory for directory in broker.log_dirs if directory in offline]
    if not failed:
        return
    there = (
        (topic, index)
        for topic, index in in_sync(image, broker.broker_id)
        if topic.partitions[index].directory_of(broker.broker_id) in failed
    )
    yield from changes.updates(there, Departure(removed=broker.broker_id))
    online = [directory for directory in broker.log_dirs if directory not in failed]
    yield BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, log_dirs=online)
