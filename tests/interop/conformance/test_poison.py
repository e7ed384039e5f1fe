"""Batches whose contents lie, against Apache Kafka: each is answered alike, and what is taken is kept alike."""

from __future__ import annotations

import pytest

from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import POISONED, STRICTER
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.poison import POISON
from tests.interop.conformance.producing import fetch_all, produce

VERSIONS = (3, 7, 8, 13)
"""The first with batches, the last without record errors, the first with them, the newest."""


@pytest.mark.parametrize("case", POISON)
def test_poison(both: Both, case: str) -> None:
    def script(peer: Peer) -> None:
        name = f"poison-{list(POISON).index(case)}"
        topic_id = peer.create(name, len(VERSIONS), **POISON[case].configs)
        for index, version in enumerate(VERSIONS):
            produce(peer, version, name, topic_id, (index, POISON[case].data))
        fetch_all(peer, name, len(VERSIONS))

    both(script, allowed=(*POISONED, *STRICTER.get(case.partition(": ")[2], ())))
