"""ControllerRegistration (70)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, uint16, uuid


@message(ApiKey.CONTROLLER_REGISTRATION)
class ControllerRegistrationRequest:
    """A controller registers its endpoints and features with the active controller (KIP-919)."""

    controller_id: int32 = wire()
    incarnation_id: uuid = wire()
    zk_migration_ready: bool = wire()
    listeners: list[Listener] = wire()
    features: list[Feature] = wire()


@struct
class Listener:
    """An endpoint. Security protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str = wire()
    host: str = wire()
    port: uint16 = wire()
    security_protocol: int16 = wire()


@struct
class Feature:
    """The levels of a feature that the controller supports."""

    name: str = wire()
    min_supported_version: int16 = wire()
    max_supported_version: int16 = wire()


@message(ApiKey.CONTROLLER_REGISTRATION)
class ControllerRegistrationResponse:
    """The error code of the registration."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
