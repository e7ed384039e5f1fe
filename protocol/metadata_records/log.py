"""The metadata log's records about itself."""

from __future__ import annotations

from protocol.schema import message, wire
from protocol.types import int8


@message(20, versions="0", flexible="0+")
class NoOpRecord:
    """Changes nothing; keeps the log's end moving, so that observers see it is alive (KIP-835)."""


@message(23, versions="0", flexible="0+")
class BeginTransactionRecord:
    """Records from here to the end take effect together (KIP-868)."""

    name: str | None = wire(nullable="0+", tag=0, default=None)


@message(24, versions="0", flexible="0+")
class EndTransactionRecord:
    """The records since the begin take effect."""


@message(25, versions="0", flexible="0+")
class AbortTransactionRecord:
    """The records since the begin are void."""

    reason: str | None = wire(nullable="0+", tag=0, default=None)


@message(21, versions="0", flexible="0+")
class ZkMigrationStateRecord:
    """How far a migration from ZooKeeper is: 0 none, 1 migration, 2 pre-migration, 3 post-migration (KIP-866)."""

    zk_migration_state: int8 = wire()
