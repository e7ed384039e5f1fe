"""The releases of metadata.version, and the features of a new cluster by its release (KIP-584, KIP-1022).

Source: org.apache.kafka.server.common.MetadataVersion and Feature of Apache Kafka 4.4.0; Kafka's Formatter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from coordinator.cluster.brokers.features import KRAFT_VERSION, NEEDS, SUPPORTED
from coordinator.cluster.image import ELR_VERSION, METADATA_VERSION
from protocol.config import ConfigError

RELEASES: Final = (
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2",
    "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0",
    "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
    "4.4-IV0", "4.4-IV1", "4.4-IV2",
)  # fmt: skip
"""The names of metadata.version's levels, from the first that Kafka 4 can upgrade."""

FIRST_LEVEL: Final = SUPPORTED[METADATA_VERSION].min_level
LEVELS: Final = {name: level for level, name in enumerate(RELEASES, FIRST_LEVEL)}

SCRAM_SINCE: Final = LEVELS["3.5-IV2"]
"""The first metadata.version with SCRAM credentials in the metadata."""

DEFAULTS_SINCE: Final[Mapping[str, Mapping[int, str]]] = {
    ELR_VERSION: {1: "4.1-IV0"},
    "group.version": {1: "4.0-IV0"},
    "share.version": {1: "4.2-IV0", 2: "4.4-IV0"},
    "streams.version": {1: "4.2-IV1"},
    "transaction.version": {2: "4.0-IV2"},
}
"""For each feature, the levels that new clusters have, and the release from which they have them. Earlier releases have
level 0.
"""


def level_of_release(text: str) -> int:
    """Returns the metadata.version of a release such as 4.0, 4.0.1 or 4.0-IV3; without -IV, the release's last. Raises
    ConfigError.
    """
    major_minor = ".".join(text.split(".")[:2])
    levels = [level for name, level in LEVELS.items() if major_minor in (name, name.partition("-")[0])]
    if not levels:
        raise ConfigError(
            f"Unknown metadata.version '{text}'. Supported metadata.version are: {', '.join(RELEASES)}",
            name=METADATA_VERSION,
        )
    return levels[-1]


def release_of_level(level: int) -> str:
    """Returns the name of a level of metadata.version. Raises ConfigError for an unsupported level."""
    if not 0 <= level - FIRST_LEVEL < len(RELEASES):
        last = FIRST_LEVEL + len(RELEASES) - 1
        raise ConfigError(
            f"No feature:metadata.version with feature level {level}: it goes from {FIRST_LEVEL} ({RELEASES[0]}) to "
            f"{last} ({RELEASES[-1]})",
            name=METADATA_VERSION,
        )
    return RELEASES[level - FIRST_LEVEL]


def new_cluster_features(release: str | None, given: Mapping[str, int], *, dynamic_quorum: bool) -> dict[str, int]:
    """Returns the features of a new cluster: metadata.version first, then those that are `given` or on by default.

    `release` is the value of --release-version, or None for the newest. kraft.version, which is 1 with a dynamic quorum
    and 0 otherwise, is not returned, because it is not in the bootstrap checkpoint. Raises ConfigError.
    """
    metadata_version = _metadata_version(release, given)
    levels = {METADATA_VERSION: metadata_version}
    for name, defaults in DEFAULTS_SINCE.items():
        levels[name] = max((level for level, since in defaults.items() if metadata_version >= LEVELS[since]), default=0)
    levels |= given
    for problem in _problems(levels, dynamic_quorum=dynamic_quorum):
        raise ConfigError(problem)
    del levels[METADATA_VERSION]
    others = {name: levels[name] for name in sorted(levels) if levels[name] and name != KRAFT_VERSION}
    return {METADATA_VERSION: metadata_version, **others}


def _metadata_version(release: str | None, given: Mapping[str, int]) -> int:
    if METADATA_VERSION not in given:
        return level_of_release(release or RELEASES[-1])
    if release is not None:
        raise ConfigError("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
    release_of_level(given[METADATA_VERSION])
    return given[METADATA_VERSION]


def _problems(levels: Mapping[str, int], *, dynamic_quorum: bool) -> Iterator[str]:
    for name, level in levels.items():
        if name not in SUPPORTED:
            supported = ", ".join(sorted(feature for feature in SUPPORTED if feature != METADATA_VERSION))
            yield f"Unsupported feature: {name}. Supported features are: {supported}"
        elif level not in SUPPORTED[name]:
            yield f"No feature:{name} with feature level {level}"
        elif (name, level) in NEEDS:
            needed, least = NEEDS[name, level]
            if levels[needed] < least:
                yield f"{name} could not be set to {level} because it depends on {needed} level {least}"
    kraft = levels.get(KRAFT_VERSION)
    if kraft is not None and bool(kraft) is not dynamic_quorum:
        condition = (
            "if KIP-853 configuration is present" if dynamic_quorum else "unless KIP-853 configuration is present"
        )
        yield f"Cannot set kraft.version to {kraft} {condition}. Try removing the --feature flag for kraft.version."
