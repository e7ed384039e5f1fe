"""How long the answer of a follower may be held back, for more records to go with it.

A round of replication costs more than its bytes: a fetch, its answer, and two processes that wake up for them. While
nobody waits for records to be committed, no producer with acks=all, no consumer at the end, no coordinator, a follower
that has just got some gets the next a few milliseconds later, and all that came meanwhile with them. Who begins to wait
has what is held sent at once.
"""

from __future__ import annotations

from typing import Final

from broker.clock import NS_PER_MS
from broker.fetch.gathered import Gathered
from broker.fetch.sessions import FetchSession

HELD_MS: Final = 5
"""How long a follower's rounds are apart at most for that. What it lacks of its leader's log is never older."""

HELD_BYTES: Final = 512 * 1024
"""As many are worth a round."""


def hold_ms(session: FetchSession, gathered: Gathered, now_ns: int) -> int:
    """Returns for how many milliseconds what was gathered for a follower may wait for more; 0 where it is to be
    sent."""
    left_ns = session.served_ns + HELD_MS * NS_PER_MS - now_ns
    if left_ns <= 0 or gathered.size_bytes >= HELD_BYTES:
        return 0
    for fetched in gathered.partitions:
        if len(fetched.records) and fetched.replica is not None and fetched.replica.is_awaited:
            return 0
    return -(-left_ns // NS_PER_MS)
