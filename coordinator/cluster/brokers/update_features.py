"""Decides on UpdateFeatures: checks the requested feature levels (KIP-584, KIP-778, KIP-1022).

Source: Kafka's FeatureControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum

from coordinator.cluster.brokers.features import (
    KRAFT_VERSION,
    METADATA_CHANGED,
    NEEDS,
    NOT_SUPPORTED,
    SUPPORTED,
    elr_safety_records,
)
from coordinator.cluster.image import ELR_VERSION, METADATA_VERSION, Image
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from protocol.metadata_records.log import NoOpRecord
from protocol.metadata_records.settings import FeatureLevelRecord
from protocol.records.control import KRaftVersionRecord


class UpgradeType(IntEnum):
    """The direction in which the client allows a feature's level to change."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    image: Image,
    request: UpdateFeaturesRequest,
    ticket: Ticket[UpdateFeaturesResponse],
    min_insync_replicas: int,
    kraft_problem: Callable[[int], KafkaError | None],
) -> ClusterResult:
    """Returns the decision: all levels change, or none does. `kraft_problem` returns why the quorum can't get a
    kraft.version."""
    updates = {update.feature: update for update in request.feature_updates}
    proposed = {**image.features, **{name: update.max_version_level for name, update in updates.items()}}
    records: list[MetadataRecord] = []
    for update in updates.values():
        try:
            _check(image, update, proposed)
            if update.feature == KRAFT_VERSION and (problem := kraft_problem(update.max_version_level)):
                raise problem
        except KafkaError as error:
            message = f"The update failed for all features since the following feature had an error: {error.message}"
            return answered(ticket, UpdateFeaturesResponse(error_code=error.code, error_message=message))
        if update.feature != KRAFT_VERSION:
            records.append(FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level))
    elr = updates.get(ELR_VERSION)
    if elr is not None and elr.max_version_level > 0:
        records = [*elr_safety_records(image, min_insync_replicas), *records]
    kraft = updates.get(KRAFT_VERSION)
    if kraft is not None and kraft.max_version_level > image.kraft_version:
        # The answer waits for the commit of the second record, and so of the first (KAFKA-16538).
        records += [KRaftVersionRecord(version=0, k_raft_version=kraft.max_version_level), NoOpRecord()]
    results = [
        UpdatableFeatureResult(feature=update.feature, error_code=ErrorCode.NONE, error_message="NONE")
        for update in request.feature_updates
    ]
    response = UpdateFeaturesResponse(error_code=ErrorCode.NONE, error_message=None, results=results)
    return answered(ticket, response, () if request.validate_only else records)


def _upgrade_type(update: FeatureUpdateKey) -> UpgradeType:
    is_defined = 0 <= update.upgrade_type <= UpgradeType.UNSAFE_DOWNGRADE
    return UpgradeType(update.upgrade_type) if is_defined else UpgradeType.UNKNOWN


def _check(image: Image, update: FeatureUpdateKey, proposed: Mapping[str, int]) -> None:
    """Raises KafkaError(INVALID_UPDATE_VERSION) if the feature can't change to this level."""
    name, level, upgrade_type = update.feature, update.max_version_level, _upgrade_type(update)
    problem = _problem(image, name, level, upgrade_type)
    if problem is None and name == METADATA_VERSION:
        _check_metadata_version(image.metadata_version, level, upgrade_type)
    if problem is None and name not in SUPPORTED:
        problem = f"Feature {name} not found."  # every node supports level 0
    needed = NEEDS.get((name, level))
    if problem is None and needed is not None and proposed.get(needed[0], 0) < needed[1]:
        problem = f"{name} could not be set to {level} because it depends on {needed[0]} level {needed[1]}"
    if problem is not None:
        message = f"Invalid update version {level} for feature {name}. {problem}"
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)


def _problem(image: Image, name: str, level: int, upgrade_type: UpgradeType) -> str | None:
    if upgrade_type is UpgradeType.UNKNOWN:
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    unsupported = _unsupported(image, name, level)
    if unsupported is not None:
        return unsupported
    current = _level(image, name)
    if level < current and upgrade_type is UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > current and upgrade_type is not UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    if level < current and name == KRAFT_VERSION:
        return "Can't downgrade the version of this feature."
    return None


def _level(image: Image, name: str) -> int:
    if name == METADATA_VERSION:
        return image.metadata_version
    return image.kraft_version if name == KRAFT_VERSION else image.features.get(name, 0)


def _unsupported(image: Image, name: str, level: int) -> str | None:
    """Returns a node that doesn't support this level, and the reason; None if all nodes support it."""
    nodes = [(f"Local controller {image.controller_id}", SUPPORTED)]
    nodes += ((f"Broker {broker.broker_id}", broker.features) for broker in image.brokers.values())
    nodes += (
        (f"Controller {controller.controller_id}", controller.features)
        for controller in image.controllers.values()
        if controller.controller_id != image.controller_id
    )
    for node, supported in nodes:
        levels = supported.get(name, NOT_SUPPORTED)
        if levels.min_level <= level <= levels.max_level:
            continue
        if levels.max_level == 0:
            return f"{node} does not support this feature."
        return f"{node} only supports versions {levels}"
    return None


def _check_metadata_version(current: int, level: int, upgrade_type: UpgradeType) -> None:
    if level >= current:
        return
    changed = any(lost_level in METADATA_CHANGED for lost_level in range(level + 1, current + 1))
    if not changed:
        return
    unsafe = upgrade_type is UpgradeType.UNSAFE_DOWNGRADE
    why = (
        "Unsafe metadata downgrade is not supported in this version."
        if unsafe
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    message = f"Unsupported metadata.version downgrade from {current} to {level}. {why}"
    raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)
