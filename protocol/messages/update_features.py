"""UpdateFeatures (57)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.UPDATE_FEATURES)
class UpdateFeaturesRequest:
    """Raises or lowers finalized feature levels (KIP-584)."""

    timeout_ms: int32 = wire(default=60000)
    feature_updates: list[FeatureUpdateKey] = wire()
    validate_only: bool = wire(versions="1+", default=False)  # KIP-584


@struct
class FeatureUpdateKey:
    """A feature's new level; below 1 removes it. Upgrade type: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade."""

    feature: str = wire()
    max_version_level: int16 = wire()
    allow_downgrade: bool = wire(versions="0", default=False)
    upgrade_type: int8 = wire(versions="1+", default=1)  # KIP-584


@message(ApiKey.UPDATE_FEATURES)
class UpdateFeaturesResponse:
    """The error code for each feature."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    results: list[UpdatableFeatureResult] = wire(versions="0-1", default=IMPLICIT)


@struct
class UpdatableFeatureResult:
    feature: str = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
