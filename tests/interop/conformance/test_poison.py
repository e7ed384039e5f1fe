"""Compares batches with invalid contents with Apache Kafka: each has the same answer, and is stored in the same way."""

from __future__ import annotations

import pytest

from bench.jars import APACHE_KAFKA
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import POISONED, STRICTER
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.poison import POISON
from tests.interop.conformance.poison_page import outcome, page, rewrite, written
from tests.interop.conformance.producing import fetch_all, produce

VERSIONS = (3, 7, 8, 13)
"""The first version with batches, the last without record errors, the first with them, the newest."""

PAGE_VERSION = 8


@pytest.mark.parametrize("case", POISON)
def test_poison(both: Both, case: str) -> None:
    def script(peer: Peer) -> None:
        name = f"poison-{list(POISON).index(case)}"
        topic_id = peer.create(name, len(VERSIONS), **POISON[case].configs)
        for index, version in enumerate(VERSIONS):
            produce(peer, version, name, topic_id, (index, POISON[case].data))
        fetch_all(peer, name, len(VERSIONS))

    both(script, allowed=(*POISONED, *STRICTER.get(case.partition(": ")[2], ())))


def test_the_page_has_what_both_answered(both: Both, pytestconfig: pytest.Config) -> None:
    """Checks docs/records.md; --write-page writes it."""

    def script(peer: Peer) -> None:
        for number, poison in enumerate(POISON.values()):
            name = f"page-{number}"
            produce(peer, PAGE_VERSION, name, peer.create(name, **poison.configs), (0, poison.data))

    ours, theirs = both.traces(script)
    outcomes = {
        case: (outcome(their.answer), outcome(our.answer))
        for case, our, their in zip(POISON, ours, theirs, strict=True)
    }
    text = page(outcomes, APACHE_KAFKA)
    if pytestconfig.getoption("--write-page", default=False):
        rewrite("", text)
    assert written("") == text
