"""Fetch batching: how long a follower's answer may be held back, so that more records go with it.

A round of replication costs more than its bytes: a fetch, its answer, and two processes that wake up for them. If
nothing waits for records to be committed (no producer with acks=all, no consumer at the log's end, no coordinator), a
follower that has just got records gets the next a few milliseconds later, together with all records that came
meanwhile. As soon as something waits for a commit, the held answer is sent.
"""

from __future__ import annotations

from typing import Final

from broker.clock import NS_PER_MS
from broker.fetch.gathered import Gathered
from broker.fetch.sessions import FetchSession

HELD_MS: Final = 5
"""Maximum time between a follower's rounds because of batching. A follower has all records that are older than this."""

HELD_BYTES: Final = 512 * 1024
"""The bytes that are worth a round."""


def hold_ms(session: FetchSession, gathered: Gathered, now_ns: int) -> int:
    """Returns the milliseconds for which a follower's answer may wait for more records; 0 if it must be sent now."""
    left_ns = session.served_ns + HELD_MS * NS_PER_MS - now_ns
    if left_ns <= 0 or gathered.size_bytes >= HELD_BYTES:
        return 0
    for fetched in gathered.partitions:
        if len(fetched.records) and fetched.replica is not None and fetched.replica.is_awaited:
            return 0
    return -(-left_ns // NS_PER_MS)
