"""Compares message sets with invalid contents with the last Apache Kafka that accepted any: the same answers, and the
same content."""

from __future__ import annotations

import pytest

from protocol.messages.produce import ProduceRequest
from tests.interop.conformance.compare import Both
from tests.interop.conformance.conftest import LAST_OF_3
from tests.interop.conformance.meant import OLD_MESSAGES, POISONED
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.poison_messages import POISONED_MESSAGES
from tests.interop.conformance.poison_page import MESSAGES_TITLE, messages_page, outcome, rewrite, written
from tests.interop.conformance.producing import fetch_all, produce

PAGE_VERSION = 2

pytestmark = pytest.mark.before_4(alone=True)


@pytest.mark.parametrize("case", POISONED_MESSAGES)
def test_message_set(both: Both, case: str) -> None:
    poison = POISONED_MESSAGES[case]

    def script(peer: Peer) -> None:
        versions = tuple(both.pair.versions(ProduceRequest))
        name = f"messages-{list(POISONED_MESSAGES).index(case)}"
        topic_id = peer.create(name, len(versions), **poison.configs)
        for index, version in enumerate(versions):
            produce(peer, version, name, topic_id, (index, poison.data))
        fetch_all(peer, name, len(versions))

    both(script, allowed=(*POISONED, *OLD_MESSAGES.get(case.partition(": ")[2], ())))


def test_the_page_has_what_both_answered(both: Both, pytestconfig: pytest.Config) -> None:
    """Checks the last part of docs/records.md; --write-page writes it."""

    def script(peer: Peer) -> None:
        for number, poison in enumerate(POISONED_MESSAGES.values()):
            name = f"messages-page-{number}"
            produce(peer, PAGE_VERSION, name, peer.create(name, **poison.configs), (0, poison.data))

    ours, theirs = both.traces(script)
    outcomes = {
        case: (outcome(their.answer), outcome(our.answer))
        for case, our, their in zip(POISONED_MESSAGES, ours, theirs, strict=True)
    }
    text = messages_page(outcomes, LAST_OF_3)
    if pytestconfig.getoption("--write-page", default=False):
        rewrite(MESSAGES_TITLE, text)
    assert written(MESSAGES_TITLE) == text
