"""A broker or controller as the metadata log has it (org.apache.kafka.metadata.BrokerRegistration)."""

from __future__ import annotations

from typing import NamedTuple

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

ASSUMED_ONLINE = frozenset({bytes(16), bytes(15) + b"\x01"})
"""DirectoryId.MIGRATING and UNASSIGNED: where the replica is will be known once its broker says so."""


class Endpoint(NamedTuple):
    """One listener of a node; `security_protocol` is 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class FeatureRange(NamedTuple):
    """The levels of a feature that a node can run with."""

    min_level: int
    max_level: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and (level == 0 or self.min_level <= level <= self.max_level)

    def __str__(self) -> str:
        return str(self.min_level) if self.min_level == self.max_level else f"{self.min_level}-{self.max_level}"


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
        """Whether partitions may be led by it."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online(self, directory: Uuid | None) -> bool:
        """Whether a replica in this directory is served: one that is not yet assigned, or migrating, counts as."""
        return directory is None or directory in ASSUMED_ONLINE or not self.log_dirs or directory in self.log_dirs

    def endpoint(self, listener: str) -> Endpoint | None:
        """Its address on a listener of this name."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)

    def to_record(self) -> RegisterBrokerRecord:
        """The record that registers this broker."""
        return RegisterBrokerRecord(
            broker_id=self.broker_id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                BrokerEndpoint(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
                for one in self.endpoints
            ],
            features=[
                BrokerFeature(name=name, min_supported_version=levels.min_level, max_supported_version=levels.max_level)
                for name, levels in self.features.items()
            ],
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
        """The record that registers this controller."""
        return RegisterControllerRecord(
            controller_id=self.controller_id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=False,
            end_points=[
                ControllerEndpoint(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
                for one in self.endpoints
            ],
            features=[
                ControllerFeature(
                    name=name, min_supported_version=levels.min_level, max_supported_version=levels.max_level
                )
                for name, levels in self.features.items()
            ],
        )


def broker_from_record(record: RegisterBrokerRecord) -> BrokerRegistration:
    """The broker that a RegisterBrokerRecord makes."""
    return BrokerRegistration(
        broker_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(Endpoint(one.name, one.host, one.port, one.security_protocol) for one in record.end_points),
        features={
            one.name: FeatureRange(one.min_supported_version, one.max_supported_version) for one in record.features
        },
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=tuple(record.log_dirs),
        cordoned_log_dirs=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
    )


def changed_broker(broker: BrokerRegistration, record: BrokerRegistrationChangeRecord) -> BrokerRegistration:
    """The broker after a change: each flag is 1, -1 or 0 for yes, no or as it was."""
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
    """The controller that a RegisterControllerRecord makes."""
    return ControllerRegistration(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(Endpoint(one.name, one.host, one.port, one.security_protocol) for one in record.end_points),
        features={
            one.name: FeatureRange(one.min_supported_version, one.max_supported_version) for one in record.features
        },
    )
