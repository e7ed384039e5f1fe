"""Scrapes of a broker in the test's process, over a socket, parsed by prometheus_client."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from tests.broker.inprocess import InProcess

OPTIONS = {"odradek.metrics.listener": "127.0.0.1:0"}
OPEN_METRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


class Answer(NamedTuple):
    """A status, headers by lower-case name, and a body."""

    status: int
    headers: dict[str, str]
    body: str


def port_of(broker: InProcess) -> int:
    """Returns the port of the broker's metrics."""
    assert broker.server.metrics is not None
    return broker.server.metrics.port


async def get(broker: InProcess, path: str = "/metrics", accept: str = "", method: str = "GET") -> Answer:
    """Returns the answer to one request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(broker))
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: broker\r\nAccept: {accept}\r\n\r\n".encode())
    received = (await reader.read()).decode()
    writer.close()
    head, _, body = received.partition("\r\n\r\n")
    line, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    return Answer(int(line.split()[1]), headers, body)


def samples(body: str, *, is_open_metrics: bool = False) -> dict[str, float]:
    """Returns the values by name and labels, as written, with sorted labels."""
    families = (open_metrics if is_open_metrics else plain_text)(body)
    return {
        f"{sample.name}{{{','.join(f'{name}={value}' for name, value in sorted(sample.labels.items()))}}}": sample.value
        for family in families
        for sample in family.samples
    }


async def scraped(broker: InProcess) -> dict[str, float]:
    """Returns the samples of a new scrape; a cached page is not used."""
    assert broker.server.metrics is not None
    broker.server.metrics.scraper.forget_pages()
    return samples((await get(broker)).body)
