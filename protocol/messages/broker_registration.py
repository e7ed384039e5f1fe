"""BrokerRegistration (62)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64, uint16, uuid


@message(ApiKey.BROKER_REGISTRATION)
class BrokerRegistrationRequest:
    """A starting broker registers with the KRaft controller (KIP-631)."""

    broker_id: int32 = wire()
    cluster_id: str = wire()
    incarnation_id: uuid = wire()
    listeners: list[Listener] = wire()
    features: list[Feature] = wire()
    rack: str | None = wire(nullable="0+")
    is_migrating_zk_broker: bool = wire(versions="1+", default=False)  # KIP-866
    log_dirs: list[uuid] = wire(versions="2+", default=IMPLICIT)  # KIP-858
    previous_broker_epoch: int64 = wire(versions="3+", default=-1)  # KIP-966


@struct
class Listener:
    """An endpoint. Security protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str = wire()
    host: str = wire()
    port: uint16 = wire()
    security_protocol: int16 = wire()


@struct
class Feature:
    """The levels of a feature that the broker supports."""

    name: str = wire()
    min_supported_version: int16 = wire()
    max_supported_version: int16 = wire()


@message(ApiKey.BROKER_REGISTRATION)
class BrokerRegistrationResponse:
    """The broker epoch, which the broker's heartbeats must contain."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    broker_epoch: int64 = wire(default=-1)
