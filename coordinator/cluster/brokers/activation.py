"""The records that a controller writes when it becomes active, before any decision.

Source: Kafka's ActivationRecordsGenerator and ClusterControlManager.registerController.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.cluster.brokers.features import SUPPORTED, elr_safety_records
from coordinator.cluster.brokers.info import ControllerRegistration, Endpoint
from coordinator.cluster.image import ELR_VERSION, Image
from coordinator.cluster.record import MetadataRecord
from protocol.metadata_records.log import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from protocol.metadata_records.settings import FeatureLevelRecord
from protocol.types import Uuid

CONTROLLER_REGISTRATION_VERSION = 15
"""The metadata.version from which controllers register (3.7-IV0, KIP-919)."""

CONTROLLER_UNREGISTRATION_VERSION = 33
"""The metadata.version from which the registration of a controller can be removed (4.4-IV2, KIP-1312)."""


def activation_records(
    image: Image, bootstrap: Sequence[MetadataRecord], min_insync_replicas: int
) -> list[MetadataRecord]:
    """Returns the first records of a new cluster: its features, in a metadata transaction (KIP-868)."""
    elr = any(
        isinstance(record, FeatureLevelRecord) and record.name == ELR_VERSION and record.feature_level > 0
        for record in bootstrap
    )
    safety = elr_safety_records(image, min_insync_replicas) if elr else ()
    return [BeginTransactionRecord(name="Bootstrap records"), *bootstrap, *safety, EndTransactionRecord()]


def abort_record() -> AbortTransactionRecord:
    """Returns the record that ends a metadata transaction that the last controller left open."""
    return AbortTransactionRecord(reason="Controller failover")


def own_registration(
    controller_id: int, incarnation_id: Uuid, endpoints: tuple[Endpoint, ...]
) -> ControllerRegistration:
    """Returns the registration of a controller of this release."""
    return ControllerRegistration(controller_id, incarnation_id, endpoints, SUPPORTED)


def controller_records(image: Image, own: ControllerRegistration) -> list[MetadataRecord]:
    """Returns the records that register the controller; none if it is registered, or if the metadata.version doesn't
    support them."""
    if image.metadata_version < CONTROLLER_REGISTRATION_VERSION or image.controllers.get(own.controller_id) == own:
        return []
    return [own.to_record()]
