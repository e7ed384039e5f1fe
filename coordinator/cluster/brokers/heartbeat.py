"""Decides on BrokerHeartbeat: if a broker is fenced, may lead, and may stop (KIP-631, KIP-841, KIP-858).

Source: Kafka's BrokerHeartbeatManager.calculateNextBrokerState and ReplicationControlManager.processBrokerHeartbeat.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum

from coordinator.cluster.brokers.info import BrokerRegistration
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.change import DIRECTORIES_SINCE
from coordinator.cluster.partitions.changes import Departure, PartitionChanges, in_sync, leaderless, leads_any
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.engine.result import Result, Ticket
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord
from protocol.types import Uuid

YES = 1
NO = -1

CORDONED_SINCE = 30
"""The metadata.version (4.3-IV0) from which brokers register cordoned directories."""


class BrokerState(Enum):
    """The state of a registered broker: FENCED → UNFENCED → CONTROLLED_SHUTDOWN → SHUTDOWN_NOW."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "in controlled shutdown"
    SHUTDOWN_NOW = "may stop"


LEAVES = frozenset({BrokerState.FENCED, BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW})
"""The states in which a broker is in no ISR."""


def check_broker_epoch(image: Image, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """Returns the broker. Raises KafkaError(STALE_BROKER_EPOCH) if it is not registered, or has registered again
    since.
    """
    broker = image.brokers.get(broker_id)
    if broker is None:
        message = f"No broker registration found for broker id {broker_id}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, message)
    if broker.epoch != broker_epoch:
        message = f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, message)
    return broker


def broker_heartbeat(
    image: Image,
    request: BrokerHeartbeatRequest,
    configs: ConfigRules,
    registered_at: int | None = None,
    *,
    may_stop: bool = True,
    is_stopping: bool = True,
) -> tuple[list[MetadataRecord], BrokerHeartbeatResponse]:
    """Returns the records and the response: the broker's next state, and the changes of partitions that follow from it.
    Raises KafkaError(STALE_BROKER_EPOCH).

    `registered_at` is the offset of the broker's registration record, or None if only its epoch is known. `may_stop` is
    true if the other brokers have read the new leaders of its partitions. `is_stopping` is false for a broker that was
    fenced since it began its controlled shutdown.
    """
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    is_caught_up = request.current_metadata_offset >= (broker.epoch if registered_at is None else registered_at)
    before = state_of(broker)
    if before is BrokerState.CONTROLLED_SHUTDOWN and not is_stopping:
        before = BrokerState.UNFENCED
    after = next_state(image, broker, before, request, is_caught_up=is_caught_up, may_stop=may_stop)
    failed = _failed_directories(image, broker, request.offline_log_dirs)
    changes = PartitionChanges(image, configs, offline={broker.broker_id: failed})
    records: list[MetadataRecord] = []
    if after is not before:
        records += _transition(image, broker, after, changes)
    if failed:
        records += _directories_offline(
            image, broker, failed, changes, has_left=after in LEAVES and after is not before
        )
    records += _directories_cordoned(image, broker, request.cordoned_log_dirs)
    response = BrokerHeartbeatResponse(
        error_code=ErrorCode.NONE,
        is_caught_up=is_caught_up,
        is_fenced=after in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=after is BrokerState.SHUTDOWN_NOW,
    )
    return records, response


def heartbeat_in_session(
    image: Image,
    request: BrokerHeartbeatRequest,
    ticket: Ticket[BrokerHeartbeatResponse],
    configs: ConfigRules,
    sessions: BrokerSessions,
    now_ms: int,
) -> ClusterResult:
    """Returns the decision on a heartbeat, with the state of the broker's session. Raises
    KafkaError(STALE_BROKER_EPOCH).

    The broker in this process may stop at once, because the controller has already waited until the other brokers had
    read the new leaders of its partitions.
    """
    broker_id = request.broker_id
    records, response = broker_heartbeat(
        image,
        request,
        configs,
        sessions.registered_at(broker_id),
        may_stop=broker_id == sessions.own_id or sessions.may_stop(image, broker_id),
        is_stopping=sessions.is_stopping(broker_id),
    )
    result: ClusterResult = Result(records)
    result.answer(ticket, response)
    result.effect(sessions.heard, broker_id, request.broker_epoch, request.current_metadata_offset, now_ms)
    if response.should_shut_down:
        result.effect(sessions.end, broker_id)
    elif request.want_shut_down:
        result.effect(sessions.stops, broker_id)
    return result


def state_of(broker: BrokerRegistration) -> BrokerState:
    """Returns the state of a broker from its registration."""
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def next_state(
    image: Image,
    broker: BrokerRegistration,
    state: BrokerState,
    request: BrokerHeartbeatRequest,
    *,
    is_caught_up: bool,
    may_stop: bool,
) -> BrokerState:
    """Returns the broker's next state. A broker that wants to stop hands over all its partitions first."""
    if state is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED if is_caught_up and not request.want_fence else BrokerState.FENCED
    if state is BrokerState.UNFENCED:
        if request.want_fence:
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        if not request.want_shut_down:
            return BrokerState.UNFENCED
    waits = leads_any(image, broker.broker_id) or (state is BrokerState.CONTROLLED_SHUTDOWN and not may_stop)
    return BrokerState.CONTROLLED_SHUTDOWN if waits else BrokerState.SHUTDOWN_NOW


def fence_broker(image: Image, broker_id: int, configs: ConfigRules) -> list[MetadataRecord]:
    """Returns the records that fence a broker whose session has ended; none if the broker is already fenced, or not
    registered.
    """
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return []
    return [*_transition(image, broker, BrokerState.FENCED, PartitionChanges(image, configs))]


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


def _failed_directories(image: Image, broker: BrokerRegistration, offline: Collection[Uuid]) -> list[Uuid]:
    """Returns the log directories in `offline` that are registered for the broker."""
    if image.metadata_version < DIRECTORIES_SINCE:
        return []
    named = frozenset(offline)
    return [directory for directory in broker.log_dirs if directory in named]


def _directories_offline(
    image: Image, broker: BrokerRegistration, failed: Collection[Uuid], changes: PartitionChanges, *, has_left: bool
) -> Iterator[MetadataRecord]:
    """Yields the records for failed log directories: the broker leaves the ISRs of replicas in them, and its
    registration keeps only the other directories. If the broker `has_left` all ISRs with the same heartbeat, the
    first part is skipped.
    """
    if not has_left:
        there = (
            (topic, index)
            for topic, index in in_sync(image, broker.broker_id)
            if topic.partitions[index].directory_of(broker.broker_id) in failed
        )
        yield from changes.updates(there, Departure(removed=broker.broker_id))
    online = [directory for directory in broker.log_dirs if directory not in failed]
    yield BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, log_dirs=online)


def _directories_cordoned(
    image: Image, broker: BrokerRegistration, cordoned: Collection[Uuid] | None
) -> Iterator[MetadataRecord]:
    """Yields the record that cordons these registered log directories, which then get no new replicas (KIP-1066). None
    if the broker's heartbeat doesn't have them.
    """
    if cordoned is None or image.metadata_version < CORDONED_SINCE:
        return
    own = sorted(set(cordoned).intersection(broker.log_dirs))
    if set(own) != set(broker.cordoned_log_dirs or ()):
        yield BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=own
        )
