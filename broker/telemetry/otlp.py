"""Hands pushes on to a collector, by OTLP over HTTP.

What the broker knows of the client is added to each resource, as KIP-714 names it.
Source: opentelemetry.io/docs/specs/otlp, "OTLP/HTTP".
"""

from __future__ import annotations

from typing import Final

from broker.telemetry.push import Push
from broker.telemetry.queue import NotTaken
from broker.workers import Workers

TIMEOUT_S: Final = 5.0
"""A broker that stops waits as long for a collector that does not answer."""
RETRIABLE: Final = frozenset({429, 502, 503, 504})
CONTENT_TYPE: Final = "application/x-protobuf"


class OtlpCollector:
    """One endpoint, as `http://host:4318/v1/metrics`."""

    def __init__(self, url: str, broker_id: int) -> None:
        self._url = url
        self._broker_id = broker_id
        self._workers = Workers(1, "telemetry-otlp")

    async def deliver(self, push: Push) -> None:
        """Posts a push. Raises NotTaken, INVALID_RECORD."""
        await self._workers.call(lambda: post(self._url, enriched(push.data, push.labels(self._broker_id))))

    def close(self) -> None:
        """Waits for the post under way."""
        self._workers.close()


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


def post(url: str, body: bytes) -> None:
    """Posts in the calling thread. Raises NotTaken."""
    import http.client
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, body, {"Content-Type": CONTENT_TYPE}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):
            pass  # that it has taken them is all that it can say
    except urllib.error.HTTPError as error:
        raise NotTaken(f"the collector answers {error.code}", is_final=error.code not in RETRIABLE) from error
    except (OSError, http.client.HTTPException) as error:  # the latter where it speaks no HTTP
        raise NotTaken(f"the collector is not reached: {error}", is_final=False) from error
