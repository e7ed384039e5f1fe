"""The metadata log's records about itself."""

from __future__ import annotations

from protocol.schema import versioned, wire
from protocol.types import int8


@versioned(20, versions="0", flexible="0+")
class NoOpRecord:
    """A record without effect. It advances the log's end, so that observers see an active leader (KIP-835)."""


@versioned(23, versions="0", flexible="0+")
class BeginTransactionRecord:
    """The beginning of a transaction, whose records take effect together at its end (KIP-868)."""

    name: str | None = wire(nullable="0+", tag=0, default=None)


@versioned(24, versions="0", flexible="0+")
class EndTransactionRecord:
    """The end of a transaction. Its records take effect."""


@versioned(25, versions="0", flexible="0+")
class AbortTransactionRecord:
    """The abort of a transaction. Its records are discarded."""

    reason: str | None = wire(nullable="0+", tag=0, default=None)


@versioned(21, versions="0", flexible="0+")
class ZkMigrationStateRecord:
    """The state of a migration from ZooKeeper: 0 none, 1 migration, 2 pre-migration, 3 post-migration (KIP-866)."""

    zk_migration_state: int8 = wire()
