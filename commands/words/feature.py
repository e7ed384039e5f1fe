"""`odradek feature`: the features of a cluster and their levels (KIP-584)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from cli.actions import Actions
from cli.flags import DRY_RUN, YES
from cli.parser import Parser
from commands.errors import explain, misuse, raise_if
from commands.printing import Row
from commands.session import Session, assignments
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
"""The kinds of changes (org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType)."""

COLUMNS: Final = ("feature", "level", "min", "max", "epoch")
VERSION: Final = 1
"""The last version of UpdateFeatures with a result for each feature."""


def declare(actions: Actions) -> None:
    actions.add(
        "list",
        "list features with their level, and the levels that the brokers support",
        list_all,
        examples=("odradek feature list", "odradek feature list -o table"),
    )
    actions.add(
        "upgrade",
        "raise the levels of features",
        upgrade,
        options=_upgrade_options,
        examples=("odradek feature upgrade transaction.version=2 --dry-run",),
    )
    actions.add(
        "downgrade",
        "lower the levels of features; level 0 turns a feature off",
        downgrade,
        options=_downgrade_options,
        examples=("odradek feature downgrade transaction.version=1 --dry-run",),
        more="--unsafe also allows a lower level that loses metadata.",
    )


def _levels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("levels", nargs="+", metavar="FEATURE=LEVEL")
    DRY_RUN.add(parser)


def _upgrade_options(parser: Parser) -> None:
    _levels(parser)


def _downgrade_options(parser: Parser) -> None:
    _levels(parser)
    parser.add_argument("--unsafe", action="store_true", help="also if metadata is lost")
    YES.add(parser, help="with --unsafe: do not ask for confirmation")


async def list_all(session: Session) -> None:
    request = ApiVersionsRequest(client_software_name="odradek", client_software_version="unknown")
    answer = await session.cluster.any(request, ApiVersionsResponse)
    raise_if("features", answer.error_code)
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    rows: list[Row] = [
        {
            "feature": feature.name,
            "level": levels.get(feature.name, 0),
            "min": feature.min_version,
            "max": feature.max_version,
            "epoch": answer.finalized_features_epoch,
        }
        for feature in sorted(answer.supported_features, key=lambda feature: feature.name)
    ]
    session.output.rows(COLUMNS, rows, empty="the cluster has no features")


async def upgrade(session: Session) -> int:
    return await _update(session, UPGRADE)


async def downgrade(session: Session) -> int:
    options = session.options
    if options.unsafe and not options.dry_run:
        session.confirm([text.partition("=")[0] for text in options.levels], "an unsafe downgrade of")
    return await _update(session, UNSAFE_DOWNGRADE if options.unsafe else SAFE_DOWNGRADE)


async def _update(session: Session, kind: int) -> int:
    options = session.options
    levels = _parse(options.levels)
    updates = [
        FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=kind != UPGRADE, upgrade_type=kind)
        for name, level in levels.items()
    ]
    request = UpdateFeaturesRequest(
        timeout_ms=session.cluster.timeout_ms, feature_updates=updates, validate_only=options.dry_run
    )
    answer = await session.cluster.controller(request, UpdateFeaturesResponse, max_version=VERSION)
    errors = {
        result.feature: explain(result.error_code, result.error_message)
        for result in answer.results
        if result.error_code
    }
    if answer.error_code:  # of the whole request, which changes all features or none
        errors = dict.fromkeys(levels, explain(answer.error_code, answer.error_message)) | errors
    result = "would be changed" if options.dry_run else "changed"
    rows: list[Row] = [
        {"feature": name, "level": level, **({"error": errors[name]} if name in errors else {"result": result})}
        for name, level in levels.items()
    ]
    return session.results(("feature", "level"), rows)


def _parse(texts: Sequence[str]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for name, text in assignments(texts, "FEATURE=LEVEL").items():
        if not (text.isascii() and text.isdecimal() and int(text) < 1 << 15):
            raise misuse(f"{name}={text}: expected a level, such as {name}=1")
        levels[name] = int(text)
    return levels
