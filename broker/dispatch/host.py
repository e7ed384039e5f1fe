"""Host: the parts that brokers and controllers have in common to answer requests."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.layers import Layers
from broker.config.live import LiveConfig
from broker.dispatch.api import Apis
from broker.metadata.opening import ClusterPart
from broker.replica.new_logs import NewLogs
from broker.replica.topics import TopicCreator
from broker.request.authorisation import Authorizer
from broker.request.context import ClientConnection
from broker.request.interceptors import Interceptors
from broker.request.log_limiter import LogLimiter
from broker.request.pending import Answer
from broker.request.request_times import RequestTimes
from broker.workers import CodecThreads
from coordinator.cluster.controller import Controller
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.requester import Requester
from protocol.api_key import ApiKey
from protocol.errors import ProtocolError
from protocol.lazy import lazy

if TYPE_CHECKING:
    from broker.metadata.quorum_node import QuorumNode
    from broker.request import mutation_quotas
    from broker.request.client_quotas import ClientQuotas
    from broker.request.mutation_quotas import MutationQuotas
else:  # with the first change to the cluster
    mutation_quotas = lazy("broker.request.mutation_quotas")

UNADVERTISED: Final[frozenset[int]] = frozenset()
PROCESS_SECRET_BYTES: Final = 32
TELEMETRY: Final = frozenset({int(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS), int(ApiKey.PUSH_TELEMETRY)})
"""The APIs of telemetry, which ApiVersions lists only if the broker has a receiver, as in Apache Kafka."""


def never() -> bool:
    """Returns False: no controller is in this process."""
    return False


class Forwarding(NamedTuple):
    """The part of the controllers in other processes for clients' requests."""

    forward: Callable[[object, int, Requester], Awaitable[bytes]]
    """(request, version, requester) → the body of the active controller's response. Raises KafkaError."""
    rejected_configs: Callable[[object], Awaitable[Mapping[int, object]]]
    """(request to change configs) → the answers for the resources that this broker rejects, by their index."""
    is_here: Callable[[], bool] = never
    """Returns True while the controller in this process leads, which then answers."""


class Host:
    """One running process, as seen by handlers that serve both brokers' and controllers' listeners."""

    broker_id: int | None = None
    """The id of the broker whose listeners these are; None for a controller's."""
    forwarding: Forwarding | None = None
    """Forwards requests that the controller answers; None if no other process may be the controller."""

    def __init__(
        self,
        live_config: LiveConfig,
        clock: Clock,
        cluster: ClusterPart,
        apis: Apis,
        lead_quorum: Callable[[], QuorumNode] | None,
    ) -> None:
        """`lead_quorum` returns the quorum of a controller in this process, at its first use."""
        self.live_config = live_config
        self.clock = clock
        self.image: Image = cluster.image
        """The cluster's state, as of the last committed record that this process has."""
        self.loader: MetadataLoader = cluster.loader
        self.image_as_of_ms = cluster.current_as_of_ms
        """Returns the monotonic time up to which the image is current; None if it always is."""
        self.is_loaded = cluster.is_loaded
        """Returns True once the image has all records that were committed before this process started."""
        self.controller: Controller = cluster.controller
        self.metadata_snapshots = cluster.snapshots
        self.apis = apis
        self.new_logs = NewLogs(clock)
        self.topics = TopicCreator(self.controller, self.new_logs)
        self.api_versions: dict[int, tuple[int, bytes]] = {}
        """The body of ApiVersions' response by version, each with the offset of the metadata that it was made from."""
        self.authorizer: Authorizer | None = None
        """Authorizes requests; None if everything is allowed."""
        self.interceptors = Interceptors(RequestTimes(clock))
        """Every answer passes through these interceptors once."""
        self.quotas: ClientQuotas | None = None
        """The quotas of clients' requests; None if there are none."""
        self.faults = LogLimiter()
        """Limits the log lines about requests that failed because of a bug of the broker."""
        self.limited_lines: dict[str, LogLimiter] = {}
        """Limiters of other kinds of lines, by the message that reports the number of suppressed lines."""
        self.process_secret = os.urandom(PROCESS_SECRET_BYTES)
        """The secret from which the listeners of this process derive values that must be unpredictable, and equal on
        all listeners."""
        self.codec_threads = CodecThreads()
        self._lead_quorum = lead_quorum
        self.answer_forwarded: Callable[[ClientConnection, memoryview], Answer] = self._answer_nothing
        """Answers a request that came in an Envelope, for a client that is connected elsewhere; as `Dispatcher.answer`
        does."""

    @property
    def unadvertised(self) -> frozenset[int]:
        """APIs that are served, but not listed in ApiVersions."""
        return UNADVERTISED if self.config.takes_telemetry else TELEMETRY

    @staticmethod
    def _answer_nothing(_: ClientConnection, frame: memoryview) -> Answer:
        raise ProtocolError(f"requests of {len(frame)} bytes are forwarded to controllers only", offset=0)

    @property
    def forwards(self) -> bool:
        """True if the active controller is in another process."""
        return self.forwarding is not None and not self.forwarding.is_here()

    @property
    def config(self) -> BrokerConfig:
        """The options in force."""
        return self.live_config.effective

    @property
    def layers(self) -> Layers:
        """The options in force, with their sources."""
        return self.live_config.layers

    @cached_property
    def mutation_quotas(self) -> MutationQuotas:
        """The quotas of changes to the cluster; made at the first change."""
        config = self.config
        burst_s = config.controller_quota_window_num * config.controller_quota_window_size_seconds
        return mutation_quotas.MutationQuotas(self.image, self.clock, burst_s)

    @cached_property
    def quorum(self) -> QuorumNode:
        """The quorum of the controller in this process. A broker with remote controllers never uses it, because
        it forwards these requests."""
        assert self._lead_quorum is not None
        return self._lead_quorum()
