"""Random requests of every API and version that both serve, in worlds that were set up alike."""

from __future__ import annotations

import itertools

import pytest

from tests.fuzz.counts import Counts
from tests.fuzz.differential import BrokerPair, side_by_side
from tests.interop.conformance.peers import Pair

REQUESTS = 1500
FIRST_SEED = 0


@pytest.mark.timeout(900)
def test_random_requests_are_answered_as_apache_kafka_answers_them(pair: Pair) -> None:
    counts = Counts()
    both = BrokerPair(pair.odradek, pair.apache, pair.served)
    side_by_side(both, counts, itertools.count(FIRST_SEED), lambda: counts.total["requests"] >= REQUESTS)
    print(counts.table())
    assert not counts.total["different"], counts.printed()
