"""Random requests of every API and version that both serve, in worlds that were set up alike."""

from __future__ import annotations

import pytest

from tests.fuzz.differential import Counts, Fuzz
from tests.fuzz.twins import Twins
from tests.interop.conformance.peers import Pair, Peer

REQUESTS = 500
FIRST_SEED = 0


@pytest.mark.timeout(900)
def test_random_requests_are_answered_as_apache_kafka_answers_them(pair: Pair) -> None:
    counts = Counts()
    ours, theirs = (Peer(peer.name, f"{peer.host}:{peer.port}", peer.data) for peer in (pair.odradek, pair.apache))
    fuzz = Fuzz(Twins(ours, theirs), pair.served, counts)
    seed = FIRST_SEED
    while counts.total["requests"] < REQUESTS:
        fuzz.episode(seed)
        seed += 1
    print(counts.table())
    assert not counts.total["different"], counts.printed()
