"""Decides on BrokerRegistration and UnregisterBroker (KIP-631).

A broker that registers is fenced: it leads nothing until a heartbeat unfences it. A new incarnation means that the
previous process has ended. If that may have lost records, the broker is in no ISR until it is elected again.

Source: Kafka's ClusterControlManager.registerBroker, ReplicationControlManager.handleBrokerShutdown (KIP-966).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from coordinator.cluster.brokers.bounds import (
    MAX_DIRECTORIES,
    check_features,
    check_listeners,
    check_node,
    check_text,
    invalid,
)
from coordinator.cluster.brokers.features import KRAFT_VERSION
from coordinator.cluster.brokers.info import BrokerRegistration, Endpoint, FeatureRange
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import METADATA_VERSION, Image
from coordinator.cluster.partitions.change import DIRECTORIES_SINCE
from coordinator.cluster.partitions.changes import Departure, PartitionChanges, eligible, in_sync
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.engine.result import Result, Ticket, reply
from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy
from protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from protocol.metadata_records.nodes import UnregisterBrokerRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import uuid_to_text

if TYPE_CHECKING:
    from protocol.messages import unregister_broker as messages
    from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
else:  # with the first request
    messages = lazy("protocol.messages.unregister_broker")

IN_USE = (
    "Another broker is registered with that broker id. If the broker was recently restarted this should self-resolve "
    "once the heartbeat manager expires the broker's session."
)

RESERVED_DIRECTORY_IDS = 100
"""Smaller ids have a meaning: unassigned, lost, migrating (org.apache.kafka.common.DirectoryId)."""


def register_broker(
    image: Image,
    request: BrokerRegistrationRequest,
    configs: ConfigRules,
    *,
    is_live: bool = False,
    controller_id: int | None = None,
) -> tuple[list[MetadataRecord], int]:
    """Returns the records that register the broker, fenced, and its epoch. The epoch is the offset of the first record;
    the same incarnation keeps its epoch (KAFKA-16952). `is_live` is true if the registered incarnation has a
    session; `controller_id` is this node's id, or None if it is a broker as well.

    Raises KafkaError: INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION, BROKER_ID_NOT_REGISTERED,
    INVALID_REGISTRATION, UNSUPPORTED_VERSION.
    """
    if request.cluster_id != image.cluster_id:
        message = f"Expected cluster ID {image.cluster_id}, but got cluster ID {request.cluster_id}"
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    existing = image.brokers.get(request.broker_id)
    is_same = existing is not None and existing.incarnation_id == request.incarnation_id
    if is_live and not is_same:
        raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, IN_USE)
    if request.is_migrating_zk_broker:
        message = "Controller does not support registering ZK brokers."
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    check_node(request.broker_id, image.brokers)
    if request.broker_id == controller_id:
        raise invalid(f"Node id {controller_id} is the id of a controller, which is not a broker")
    _check_directories(image, request)
    check_listeners(request.listeners)
    check_text("Rack", request.rack)
    check_features(request.features)
    features = {
        feature.name: FeatureRange(feature.min_supported_version, feature.max_supported_version)
        for feature in request.features
    }
    _check_features(image, features)
    broker = BrokerRegistration(
        broker_id=request.broker_id,
        epoch=image.offset + 1,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(
            Endpoint(listener.name, listener.host, listener.port, listener.security_protocol)
            for listener in request.listeners
        ),
        features=features,
        rack=request.rack,
        log_dirs=tuple(request.log_dirs) if image.metadata_version >= DIRECTORIES_SINCE else (),
    )
    records: list[MetadataRecord] = []
    if existing is not None and is_same:
        broker = broker._replace(
            epoch=existing.epoch, fenced=existing.fenced, in_controlled_shutdown=existing.in_controlled_shutdown
        )
    else:
        clean = existing is not None and request.previous_broker_epoch == existing.epoch
        records += _last_incarnation_gone(image, request.broker_id, configs, clean=clean)
    records.append(broker.to_record())
    return records, broker.epoch


def register_in_session(
    image: Image,
    request: BrokerRegistrationRequest,
    ticket: Ticket[BrokerRegistrationResponse],
    configs: ConfigRules,
    sessions: BrokerSessions,
    controller_id: int | None,
    now_ms: int,
) -> ClusterResult:
    """Returns the decision on a registration, with the session of the registered incarnation. Raises the errors of
    register_broker.
    """
    broker_id = request.broker_id
    is_live = sessions.is_live(image, broker_id, now_ms)
    records, epoch = register_broker(image, request, configs, is_live=is_live, controller_id=controller_id)
    before = image.brokers.get(broker_id)
    result: ClusterResult = Result(records)
    result.answer(ticket, BrokerRegistrationResponse(error_code=ErrorCode.NONE, broker_epoch=epoch))
    if before is None or before.epoch != epoch:
        result.effect(sessions.end, broker_id)
    result.effect(sessions.registered, broker_id, epoch, now_ms)
    return result


def _check_directories(image: Image, request: BrokerRegistrationRequest) -> None:
    if image.metadata_version < DIRECTORIES_SINCE:
        return
    if not request.log_dirs:
        raise invalid("No directories specified in request")
    if len(request.log_dirs) > MAX_DIRECTORIES:
        raise invalid(f"{len(request.log_dirs)} directories in request, more than {MAX_DIRECTORIES}")
    if any(int.from_bytes(directory) < RESERVED_DIRECTORY_IDS for directory in request.log_dirs):
        raise invalid("Reserved directory ID in request")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise invalid("Duplicate directory ID in request")
    for directory in request.log_dirs:
        owner = image.directory_owners.get(directory, request.broker_id)
        if owner != request.broker_id:
            raise invalid(f"Broker {owner} is already registered with directory {uuid_to_text(directory)}")


def _check_features(image: Image, features: dict[str, FeatureRange]) -> None:
    """Raises KafkaError if the broker doesn't support a finalized feature. First checks the features that the broker
    registers."""
    finalized = {**image.features, KRAFT_VERSION: image.kraft_version}
    for name, supported in features.items():
        _check_feature(name, finalized.get(name, 0), supported)
    if METADATA_VERSION not in features:
        raise invalid("Request features do not contain 'metadata.version'")
    for name, level in finalized.items():
        if name not in features:
            _check_feature(name, level, FeatureRange(0, 0))


def _check_feature(name: str, level: int, supported: FeatureRange) -> None:
    if not supported.min_level <= level <= supported.max_level:
        message = (
            f"Unable to register because the broker does not support finalized version {level} of {name}. The "
            f"broker wants a version between {supported.min_level} and {supported.max_level}, inclusive."
        )
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)


def _last_incarnation_gone(
    image: Image, broker_id: int, configs: ConfigRules, *, clean: bool
) -> Iterator[PartitionChangeRecord]:
    """Yields the partition changes after a broker's previous incarnation has ended. Without eligible leader replicas
    every stop counts as clean, because no replica is known to be better.
    """
    changes = PartitionChanges(image, configs)
    if clean or not image.elr_enabled:
        yield from changes.updates(in_sync(image, broker_id), Departure(removed=broker_id))
    else:
        unclean = Departure(unclean=broker_id)
        yield from changes.updates(in_sync(image, broker_id), unclean)
        yield from changes.updates(eligible(image, broker_id), unclean)


def unregister_broker(
    image: Image,
    request: UnregisterBrokerRequest,
    ticket: Ticket[UnregisterBrokerResponse],
    controller_id: int,
    configs: ConfigRules,
    sessions: BrokerSessions,
) -> ClusterResult:
    """Returns the decision that removes a broker from every ISR, and its registration.

    Raises KafkaError(BROKER_ID_NOT_REGISTERED); INVALID_REQUEST for the broker in this process, which is running.
    """
    broker_id = request.broker_id
    broker = image.brokers.get(broker_id)
    if broker is None:
        message = f"Broker ID {broker_id} is not currently registered"
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if broker_id == controller_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker {broker_id} is running: stop it before it is unregistered."
        )
    changes, departure = PartitionChanges(image, configs), Departure(removed=broker_id)
    records: list[MetadataRecord] = [*changes.updates(in_sync(image, broker_id), departure)]
    records += changes.updates(eligible(image, broker_id), departure)
    records.append(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch))
    response = messages.UnregisterBrokerResponse(error_code=ErrorCode.NONE, error_message=None)
    return Result(records, [reply(ticket, response)], [partial(sessions.forget, broker_id)])
