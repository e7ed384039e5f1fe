"""Brokers and controllers in the metadata log."""

from __future__ import annotations

from protocol.schema import IMPLICIT, struct, versioned, wire
from protocol.types import int8, int16, int32, int64, uint16, uuid


@versioned(0, versions="0-4", flexible="0+")
class RegisterBrokerRecord:
    """A broker's registration, fenced at first. The record's offset is the broker epoch."""

    broker_id: int32 = wire()
    is_migrating_zk_broker: bool = wire(versions="2+", default=False)  # KIP-866
    incarnation_id: uuid = wire()
    broker_epoch: int64 = wire()
    end_points: list[BrokerEndpoint] = wire()
    features: list[BrokerFeature] = wire()
    rack: str | None = wire(nullable="0+")
    fenced: bool = wire(default=True)
    in_controlled_shutdown: bool = wire(versions="1+", default=False)  # KIP-841
    log_dirs: list[uuid] = wire(versions="3+", tag=0, default=IMPLICIT)  # KIP-858
    cordoned_log_dirs: list[uuid] | None = wire(versions="4+", nullable="4+", tag=1, default=None)  # KIP-1066


@struct
class BrokerEndpoint:
    """An endpoint; security protocol 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str = wire()
    host: str = wire()
    port: uint16 = wire()
    security_protocol: int16 = wire()


@struct
class BrokerFeature:
    name: str = wire()
    min_supported_version: int16 = wire()
    max_supported_version: int16 = wire()


@versioned(1, versions="0", flexible="0+")
class UnregisterBrokerRecord:
    """The removal of a broker's registration."""

    broker_id: int32 = wire()
    broker_epoch: int64 = wire()


@versioned(7, versions="0", flexible="0+")
class FenceBrokerRecord:
    """The fencing of a broker, in logs from before Kafka 3.4 (now BrokerRegistrationChangeRecord)."""

    id: int32 = wire()
    epoch: int64 = wire()


@versioned(8, versions="0", flexible="0+")
class UnfenceBrokerRecord:
    """The unfencing of a broker, in logs from before Kafka 3.4 (now BrokerRegistrationChangeRecord)."""

    id: int32 = wire()
    epoch: int64 = wire()


@versioned(17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord:
    """Changes to a broker's registration. Flags: -1 clears, 0 keeps, 1 sets."""

    broker_id: int32 = wire()
    broker_epoch: int64 = wire()
    fenced: int8 = wire(tag=0, default=0)
    in_controlled_shutdown: int8 = wire(versions="1+", tag=1, default=0)  # KIP-841
    log_dirs: list[uuid] = wire(versions="2+", tag=2, default=IMPLICIT)  # KIP-858
    cordoned_log_dirs: list[uuid] | None = wire(versions="3+", nullable="3+", tag=3, default=None)  # KIP-1066


@versioned(27, versions="0", flexible="0+")
class RegisterControllerRecord:
    """A controller's registration, with its endpoints and features (KIP-919)."""

    controller_id: int32 = wire()
    incarnation_id: uuid = wire()
    zk_migration_ready: bool = wire()
    end_points: list[ControllerEndpoint] = wire()
    features: list[ControllerFeature] = wire()


@struct
class ControllerEndpoint:
    """An endpoint; security protocol 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str = wire()
    host: str = wire()
    port: uint16 = wire()
    security_protocol: int16 = wire()


@struct
class ControllerFeature:
    name: str = wire()
    min_supported_version: int16 = wire()
    max_supported_version: int16 = wire()


@versioned(29, versions="0", flexible="0+")
class UnregisterControllerRecord:
    """The removal of a controller's registration (KIP-1312)."""

    controller_id: int32 = wire()
