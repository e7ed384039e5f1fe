"""Hands pushes on to a collector, by OTLP over HTTP.

What the broker knows of the client is added to each resource, as KIP-714 names it.
Source: opentelemetry.io/docs/specs/otlp, "OTLP/HTTP".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.telemetry.posting import NoAnswer, endpoint_of, post
from broker.telemetry.push import Push
from broker.telemetry.queue import NotTaken
from broker.workers import Workers

if TYPE_CHECKING:
    from ssl import SSLContext

TIMEOUT_S: Final = 5.0
"""Timeout of a collector for a push, from the look-up of its address to its answer."""
TAKEN: Final = range(200, 300)
RETRIABLE: Final = frozenset({429, 502, 503, 504})
CONTENT_TYPE: Final = "application/x-protobuf"


class OtlpCollector:
    """One endpoint, as `http://host:4318/v1/metrics`."""

    def __init__(self, url: str, broker_id: int, *, timeout_s: float = TIMEOUT_S) -> None:
        self._endpoint = endpoint_of(url)
        self._broker_id = broker_id
        self._timeout_s = timeout_s
        self._workers = Workers(1, "telemetry-otlp")
        self._tls: SSLContext | None = None
        """Once there was a push for an endpoint that is secured."""

    async def deliver(self, push: Push) -> None:
        """Posts a push. Raises NotTaken, INVALID_RECORD."""
        body = await self._workers.call(lambda: enriched(push.data, push.labels(self._broker_id)))
        if self._endpoint.is_secured and self._tls is None:
            self._tls = await self._workers.call(_system_authorities)
        try:
            status = await post(self._endpoint, body, CONTENT_TYPE, self._tls, self._timeout_s)
        except NoAnswer as error:
            raise NotTaken(f"the collector is not reached: {error}", is_final=False) from error
        if status not in TAKEN:
            raise NotTaken(f"the collector answers {status}", is_final=status not in RETRIABLE)

    def close(self) -> None:
        """Waits for the thread, whose work is short; a post under way ends with the queue that it is of."""
        self._workers.close()


def _system_authorities() -> SSLContext:
    import ssl

    return ssl.create_default_context()


def enriched(data: bytes, labels: dict[str, str]) -> bytes:
    """Returns the metrics with labels in each of their resources, in the place of what the client calls so; and no more
    than MAX_POINTS resources, since each gets them all. Raises INVALID_RECORD."""
    from broker.telemetry.points import MAX_POINTS, decoded

    message = decoded(data)
    del message.resource_metrics[MAX_POINTS:]
    for resource in message.resource_metrics:
        own = [attribute for attribute in resource.resource.attributes if attribute.key not in labels]
        del resource.resource.attributes[:]
        resource.resource.attributes.extend(own)
        for key, value in labels.items():
            resource.resource.attributes.add(key=key).value.string_value = value
    return bytes(message.SerializeToString())
