"""The registration of a broker or controller (org.apache.kafka.metadata.BrokerRegistration)."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from protocol.metadata_records.nodes import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from protocol.types import Uuid

E = TypeVar("E", BrokerEndpoint, ControllerEndpoint)
F = TypeVar("F", BrokerFeature, ControllerFeature)

ASSUMED_ONLINE = frozenset({bytes(16), bytes(15) + b"\x01"})
"""DirectoryId.MIGRATING and UNASSIGNED: the replica's broker has yet to report its directory."""


class Endpoint(NamedTuple):
    """A listener of a node; `security_protocol` is 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class FeatureRange(NamedTuple):
    """The levels of a feature that a node supports."""

    min_level: int
    max_level: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and (level == 0 or self.min_level <= level <= self.max_level)

    def __str__(self) -> str:
        return str(self.min_level) if self.min_level == self.max_level else f"{self.min_level}-{self.max_level}"


def _endpoints(kind: type[E], endpoints: tuple[Endpoint, ...]) -> list[E]:
    return [
        kind(name=endpoint.name, host=endpoint.host, port=endpoint.port, security_protocol=endpoint.security_protocol)
        for endpoint in endpoints
    ]


def _features(kind: type[F], features: dict[str, FeatureRange]) -> list[F]:
    return [
        kind(name=name, min_supported_version=levels.min_level, max_supported_version=levels.max_level)
        for name, levels in features.items()
    ]


class BrokerRegistration(NamedTuple):
    """A registered broker. Its epoch is the offset of the record that registered it."""

    broker_id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: dict[str, FeatureRange]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None

    @property
    def active(self) -> bool:
        """True if the broker may lead partitions."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online(self, directory: Uuid | None) -> bool:
        """True if the broker serves a replica in this directory. A directory that is unassigned or migrating counts as
        online."""
        return directory is None or directory in ASSUMED_ONLINE or not self.log_dirs or directory in self.log_dirs

    def endpoint(self, listener: str) -> Endpoint | None:
        """Returns the broker's endpoint of the listener with this name; None if the broker has no such listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)

    def to_record(self) -> RegisterBrokerRecord:
        """Returns the record that registers this broker."""
        return RegisterBrokerRecord(
            broker_id=self.broker_id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=_endpoints(BrokerEndpoint, self.endpoints),
            features=_features(BrokerFeature, self.features),
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.log_dirs),
            cordoned_log_dirs=None if self.cordoned_log_dirs is None else list(self.cordoned_log_dirs),
        )


class ControllerRegistration(NamedTuple):
    """A registered controller."""

    controller_id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: dict[str, FeatureRange]

    def to_record(self) -> RegisterControllerRecord:
        """Returns the record that registers this controller."""
        return RegisterControllerRecord(
            controller_id=self.controller_id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=False,
            end_points=_endpoints(ControllerEndpoint, self.endpoints),
            features=_features(ControllerFeature, self.features),
        )


def broker_from_record(record: RegisterBrokerRecord) -> BrokerRegistration:
    """Returns the broker that a RegisterBrokerRecord registers."""
    return BrokerRegistration(
        broker_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(
            Endpoint(endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol)
            for endpoint in record.end_points
        ),
        features={
            feature.name: FeatureRange(feature.min_supported_version, feature.max_supported_version)
            for feature in record.features
        },
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=tuple(record.log_dirs),
        cordoned_log_dirs=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
    )


def changed_broker(broker: BrokerRegistration, record: BrokerRegistrationChangeRecord) -> BrokerRegistration:
    """Returns the broker after a change; each flag is 1 for yes, -1 for no, or 0 for unchanged."""
    return broker._replace(
        fenced=broker.fenced if record.fenced == 0 else record.fenced > 0,
        in_controlled_shutdown=(
            broker.in_controlled_shutdown if record.in_controlled_shutdown == 0 else record.in_controlled_shutdown > 0
        ),
        log_dirs=tuple(record.log_dirs) or broker.log_dirs,
        cordoned_log_dirs=(
            broker.cordoned_log_dirs if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs)
        ),
    )


def controller_from_record(record: RegisterControllerRecord) -> ControllerRegistration:
    """Returns the controller that a RegisterControllerRecord registers."""
    return ControllerRegistration(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(
            Endpoint(endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol)
            for endpoint in record.end_points
        ),
        features={
            feature.name: FeatureRange(feature.min_supported_version, feature.max_supported_version)
            for feature in record.features
        },
    )
