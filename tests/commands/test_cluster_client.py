"""Tests which broker a command asks while another is silent."""

from __future__ import annotations

import asyncio

from client.errors import RequestTimedOut
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.commands.scripted_cluster import ScriptedCluster, ScriptedLink


def silent() -> ScriptedLink:
    link = ScriptedLink()

    def no_answer(_: object) -> object:
        raise RequestTimedOut("127.0.0.1:9093", "not answered")

    link.answers[MetadataRequest] = [no_answer]
    return link


async def test_requests_at_the_same_time_go_to_the_broker_that_has_answered() -> None:
    cluster, first = ScriptedCluster(), silent()
    cluster.links.bootstrap = [first, cluster.links.link]
    await asyncio.gather(*(cluster.client.any(MetadataRequest(topics=[]), MetadataResponse) for _ in range(2)))
    assert len(first.requests) == 2
    await asyncio.gather(*(cluster.client.any(MetadataRequest(topics=[]), MetadataResponse) for _ in range(9)))
    assert len(first.requests) == 2
    assert len(cluster.requests(MetadataRequest)) == 11


async def test_a_broker_that_stops_answering_is_not_asked_first_again() -> None:
    cluster, second = ScriptedCluster(), silent()
    answers = second.answers[MetadataRequest]
    answers.insert(0, cluster.metadata)
    cluster.links.bootstrap = [second, cluster.links.link]
    for _ in range(3):
        await cluster.client.any(MetadataRequest(topics=[]), MetadataResponse)
    assert len(cluster.requests(MetadataRequest)) == 2
    assert len(second.requests) == 3  # it answered, it did not, and it was the first address once more
