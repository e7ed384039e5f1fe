"""Posts pushes to a collector, by OTLP over HTTP.

Each resource gets the broker's labels for the client, with the names in KIP-714.

Source: opentelemetry.io/docs/specs/otlp, "OTLP/HTTP".
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from broker.telemetry.points import MAX_POINTS, decoded
from broker.telemetry.posting import NoAnswer, endpoint_of, post
from broker.telemetry.push import Push
from broker.telemetry.queue import NotTaken
from broker.workers import Workers

if TYPE_CHECKING:
    from ssl import SSLContext

TIMEOUT_S: Final = 5.0
"""Timeout of a post to the collector, from the address look-up to the answer."""
TAKEN: Final = range(200, 300)
RETRIABLE: Final = frozenset({429, 502, 503, 504})
CONTENT_TYPE: Final = "application/x-protobuf"


class OtlpCollector:
    """A collector's endpoint, such as `http://host:4318/v1/metrics`."""

    def __init__(self, url: str, broker_id: int, *, timeout_s: float = TIMEOUT_S) -> None:
        self._endpoint = endpoint_of(url)
        self._broker_id = broker_id
        self._timeout_s = timeout_s
        self._workers = Workers(1, "telemetry-otlp")
        self._tls: SSLContext | None = None
        """The TLS context; None until the first push to an https endpoint."""

    async def deliver(self, push: Push) -> None:
        """Posts a push. Raises NotTaken, or INVALID_RECORD."""
        body = await self._workers.call(lambda: enriched(push.data, push.labels(self._broker_id)))
        if self._endpoint.is_secured and self._tls is None:
            self._tls = await self._workers.call(_system_authorities)
        try:
            status = await post(self._endpoint, body, CONTENT_TYPE, self._tls, self._timeout_s)
        except NoAnswer as error:
            raise NotTaken(f"can't reach the collector: {error}", is_final=False) from error
        if status not in TAKEN:
            raise NotTaken(f"the collector answered with status {status}", is_final=status not in RETRIABLE)

    def close(self) -> None:
        """Waits for the thread, whose work is short. A post under way is cancelled with its queue."""
        self._workers.close()


def _system_authorities() -> SSLContext:
    return ssl.create_default_context()


def enriched(data: bytes, labels: dict[str, str]) -> bytes:
    """Returns the metrics with `labels` in each of their resources; they replace the client's labels of the same names.
    Raises INVALID_RECORD.

    Drops resources after the first MAX_POINTS, because the labels are added to each.
    """
    message = decoded(data)
    del message.resource_metrics[MAX_POINTS:]
    for resource in message.resource_metrics:
        own = [attribute for attribute in resource.resource.attributes if attribute.key not in labels]
        del resource.resource.attributes[:]
        resource.resource.attributes.extend(own)
        for key, value in labels.items():
            resource.resource.attributes.add(key=key).value.string_value = value
    return bytes(message.SerializeToString())
