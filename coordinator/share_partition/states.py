"""The states of a record in flight, and the states that may follow each.

    AVAILABLE ─acquire→ ACQUIRED ─accept→ ACKNOWLEDGED
      ↑   ↑                │ ├─reject, or delivered too often→ ARCHIVED
      │   └─release, time──┘ └─the same, with a dead-letter queue→ ARCHIVING ─written→ ARCHIVED
      ├─before its time, or in its backoff→ DELAYED
      └─time──────────────────────────────────┘

Source: Kafka's RecordState (KIP-932), ARCHIVING (KIP-1191), RENEW (KIP-1222).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class RecordState(IntEnum):
    """The state as state batches store it, except for DELAYED, which is stored as AVAILABLE."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4
    DELAYED = -1
    """Available, but not offered before a certain time; it can't be acknowledged meanwhile."""


AVAILABLE: Final = RecordState.AVAILABLE
ACQUIRED: Final = RecordState.ACQUIRED
ACKNOWLEDGED: Final = RecordState.ACKNOWLEDGED
ARCHIVING: Final = RecordState.ARCHIVING
ARCHIVED: Final = RecordState.ARCHIVED
DELAYED: Final = RecordState.DELAYED

STORED: Final[Mapping[int, RecordState]] = {state.value: state for state in RecordState if state is not DELAYED}
"""The states that a state batch can have, by their number."""

MAY_BECOME: Final[Mapping[RecordState, frozenset[RecordState]]] = {
    AVAILABLE: frozenset({ACQUIRED, DELAYED}),
    DELAYED: frozenset({AVAILABLE}),
    ACQUIRED: frozenset({AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED}),
    ACKNOWLEDGED: frozenset(),
    ARCHIVING: frozenset({ARCHIVED}),
    ARCHIVED: frozenset(),
}
"""The changes that consumers and time cause. In addition, a record that the log no longer has is archived from any
state."""

TERMINAL: Final = frozenset({ACKNOWLEDGED, ARCHIVED})

FREE: Final = frozenset({AVAILABLE, DELAYED})
"""States of records that no member has, and that a member may acquire."""


class AcknowledgeType(IntEnum):
    """A consumer's acknowledgement of a record; GAP is for an offset without a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


RENEW: Final = AcknowledgeType.RENEW

MEANS: Final[Mapping[int, RecordState]] = {
    AcknowledgeType.GAP: ARCHIVED,
    AcknowledgeType.ACCEPT: ACKNOWLEDGED,
    AcknowledgeType.RELEASE: AVAILABLE,
    AcknowledgeType.REJECT: ARCHIVED,
}
"""The state after an acknowledgement; RENEW changes no state."""
