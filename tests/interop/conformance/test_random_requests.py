"""Compares random requests of every API and version that both serve, on brokers with the same contents.

The brokers run one after the other, with timeouts so long that no member is removed during a test. `make
fuzz-differential` runs them side by side, with many more requests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.counts import Counts
from tests.fuzz.differential import Fuzz, brokers

REQUESTS = 500
FIRST_SEED = 0


@pytest.mark.timeout(900)
def test_random_requests_are_answered_as_apache_kafka_answers_them(tmp_path: Path) -> None:
    counts = Counts()
    with brokers(tmp_path) as pair:
        fuzz = Fuzz(pair.twins(0), pair.served, counts)
        seed = FIRST_SEED
        while counts.total["requests"] < REQUESTS:
            fuzz.episode(seed)
            seed += 1
    print(counts.table())
    assert not counts.total["different"], counts.printed()
