"""Random requests of every API and version that both serve, in worlds that were set up alike.

One world after the other, in brokers that ask no member back within the time of a test: `make fuzz-differential` has
them side by side, and many more.
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
