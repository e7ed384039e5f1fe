"""The clients that push telemetry: their subscriptions, and the times of their requests.

Source: ClientMetricsManager and ClientMetricsInstance of Apache Kafka 4.3 (KIP-714). Errors are checked in the same
order.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from coordinator.telemetry.subscriptions import ClientAttributes, RequestedMetrics
from protocol.errors import ErrorCode, KafkaError
from protocol.records.compression import Compression
from protocol.types import Uuid, uuid_to_text

MAX_INSTANCES: Final = 16_384
"""Maximum number of remembered clients; for one more, the client with the oldest request is forgotten."""

MIN_KEPT_MS: Final = 60_000
KEPT_INTERVALS: Final = 3
"""A client is forgotten after this many push intervals, but at least a minute, without a request."""

MAY_ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""Errors after which a client may request its subscription again before its interval is over."""

CODECS: Final = frozenset(int(codec) for codec in Compression)
NEVER: Final = -(1 << 62)


class ClientInstance:
    """A client that has requested its subscription."""

    __slots__ = (
        "asked_ms",
        "attributes",
        "instance_id",
        "is_terminating",
        "last_error",
        "pushed_ms",
        "requested",
        "seen_ms",
        "subscription_id",
        "version",
    )  # fmt: skip

    def __init__(
        self, instance_id: Uuid, attributes: ClientAttributes, requested: RequestedMetrics, version: int
    ) -> None:
        self.instance_id = instance_id
        self.attributes = attributes
        self.requested = requested
        self.version = version
        """The version of the subscriptions that `requested` was computed from."""
        self.subscription_id = requested.id_for(instance_id)
        self.asked_ms = NEVER
        self.pushed_ms = NEVER
        self.seen_ms = NEVER
        self.is_terminating = False
        self.last_error = ErrorCode.NONE

    @property
    def kept_ms(self) -> int:
        """Time after the last request for which the client is remembered."""
        return max(MIN_KEPT_MS, KEPT_INTERVALS * self.requested.interval_ms)

    def ask(self, now_ms: int) -> None:
        """Records a request for the subscription. Raises THROTTLING_QUOTA_EXCEEDED if the client's interval is not
        over.
        """
        if now_ms - max(self.asked_ms, self.pushed_ms) >= self.requested.interval_ms:
            self.asked_ms = now_ms
        elif self.last_error not in MAY_ASK_AGAIN:
            raise self._too_early()
        self.last_error = ErrorCode.NONE

    def push(self, subscription_id: int, codec: int, size: int, max_bytes: int, now_ms: int, *, is_last: bool) -> None:
        """Checks and records a push of `size` bytes; `is_last` if the client terminates.

        Raises INVALID_REQUEST after the last push, THROTTLING_QUOTA_EXCEEDED, UNKNOWN_SUBSCRIPTION_ID,
        UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE.
        """
        try:
            self._check(subscription_id, codec, size, max_bytes, now_ms, is_last=is_last)
        except KafkaError as error:
            self.last_error = error.code
            raise
        finally:
            self.is_terminating = is_last
        self.last_error = ErrorCode.NONE

    def _check(
        self, subscription_id: int, codec: int, size: int, max_bytes: int, now_ms: int, *, is_last: bool
    ) -> None:
        name = uuid_to_text(self.instance_id)
        if self.is_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Client [{name}] has already announced that it terminates")
        if not self._is_in_time(now_ms) and not is_last:
            raise self._too_early()
        if subscription_id != self.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, f"Unknown subscription id of the client [{name}]")
        if codec not in CODECS:
            reason = f"Unknown compression type [{codec}] in the telemetry of [{name}]"
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason)
        if size > max_bytes:
            reason = f"The telemetry of [{name}] is larger than the maximum of {max_bytes} bytes"
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, reason)

    def _is_in_time(self, now_ms: int) -> bool:
        """True if a push may arrive now. The first push after a subscription request may arrive at any time, because
        clients delay it randomly.
        """
        in_time = self.asked_ms > self.pushed_ms or now_ms - self.pushed_ms >= self.requested.interval_ms
        if in_time:
            self.pushed_ms = now_ms
        return in_time

    def _too_early(self) -> KafkaError:
        name = uuid_to_text(self.instance_id)
        return KafkaError(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            f"Request from the client [{name}] arrived before the next push interval time",
        )


class ClientInstances:
    """All remembered clients, the one with the oldest request first."""

    def __init__(self, capacity: int = MAX_INSTANCES) -> None:
        self._capacity = capacity
        self._instances: OrderedDict[Uuid, ClientInstance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._instances)

    def __contains__(self, instance_id: Uuid) -> bool:
        return instance_id in self._instances

    def find(self, instance_id: Uuid, version: int, now_ms: int) -> ClientInstance | None:
        """Returns the client with this id; None if it is unknown, or if the subscriptions have changed since its last
        request.
        """
        instance = self._instances.get(instance_id)
        if instance is None or instance.version != version:
            return None
        self._touch(instance, now_ms)
        return instance

    def add(self, instance: ClientInstance, now_ms: int) -> None:
        """Remembers a client; replaces an earlier client with this id."""
        self._instances[instance.instance_id] = instance
        self._touch(instance, now_ms)
        if len(self._instances) > self._capacity:
            self._instances.popitem(last=False)

    def remove(self, instance_id: Uuid) -> None:
        """Forgets a client, if it is remembered."""
        self._instances.pop(instance_id, None)

    def expire(self, now_ms: int) -> list[Uuid]:
        """Forgets clients without recent requests, and returns their ids."""
        gone = [
            instance.instance_id
            for instance in self._instances.values()
            if now_ms - instance.seen_ms > instance.kept_ms
        ]
        for instance_id in gone:
            del self._instances[instance_id]
        return gone

    def _touch(self, instance: ClientInstance, now_ms: int) -> None:
        instance.seen_ms = now_ms
        self._instances.move_to_end(instance.instance_id)
