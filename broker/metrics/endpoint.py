"""Serves /metrics, /healthz and /readyz of one process, from before its start to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

from broker.clock import Clock
from broker.disks.cleaner import Cleaner
from broker.dispatch.broker import Broker
from broker.dispatch.host import Host
from broker.logging import get_logger
from broker.metadata.node import NodeState
from broker.metadata.opening import ClusterPart
from broker.metrics.collect import BrokerCollector, Collector, ControllerCollector, StartingCollector
from broker.metrics.exposition import Family
from broker.metrics.http import HttpRequest, HttpResponse, plain
from broker.metrics.loop_watch import LoopWatch
from broker.metrics.scrape import Breaks, Scraper
from broker.metrics.sending import AnswerSending
from broker.metrics.server import MetricsServer
from broker.metrics.sources import ListenerView, ProcessSources, Sources
from broker.replica.alter_partition import AlterPartitionManager
from broker.replica.replica_fetchers import ReplicaFetchers
from storage.disk import Disk

NOT_STARTED: Final = "starting"

MS_PER_S: Final = 1000

logger = get_logger(__name__)


class MetricsEndpoint:
    """The HTTP endpoint: call `listen` before the process starts, `attach_broker` or `attach_controller` once it
    serves, `close` at the end.
    """

    def __init__(self, clock: Clock, disk: Disk, *, is_broker: bool) -> None:
        self._clock = clock
        self._disk = disk
        self.loop = LoopWatch(clock)
        self.started_s = clock.now_ms() / MS_PER_S
        pages = {"/metrics": self._metrics, "/healthz": self._health, "/readyz": self._readiness}
        self._server = MetricsServer(pages, clock)
        starting = StartingCollector(self.loop, disk, self.started_s)
        starting.state = NodeState.STARTING if is_broker else None
        self._starting = starting
        self._collector: Collector = starting
        self._problem: Callable[[], str | None] = lambda: NOT_STARTED
        self.scraper = Scraper(self.families, clock)
        self.port = 0
        """The port that was bound."""

    async def listen(self, host: str, port: int) -> int:
        """Serves from now on, and returns the port. Raises OSError with the address."""
        try:
            port = await self._server.listen(host, port)
        except OSError as error:
            text = f"odradek.metrics.listener: cannot listen on {host}:{port}: {error.strerror or error}"
            raise OSError(error.errno, text) from None
        self.loop.start()
        self.port = port
        logger.info("metrics are served", host=host, port=port)
        return port

    @property
    def connection_count(self) -> int:
        """The number of connected scrapers."""
        return len(self._server.connections)

    def recovers(self) -> None:
        """Sets the state to recovery: the broker is registered and is opening its logs."""
        self._starting.state = NodeState.RECOVERY

    def attach_broker(
        self,
        broker: Broker,
        listeners: Iterable[ListenerView],
        cluster: ClusterPart,
        cleaner: Cleaner,
        isr_manager: AlterPartitionManager | None,
        fetchers: ReplicaFetchers | None,
    ) -> None:
        """Adds the metrics of a broker that serves clients, and times its requests."""
        sources = Sources(self._process(broker, listeners, cluster), broker, cleaner, isr_manager, fetchers)
        self._attach(broker, BrokerCollector(sources), lambda: unready(broker))

    def attach_controller(self, host: Host, listeners: Iterable[ListenerView], cluster: ClusterPart) -> None:
        """Adds the metrics of a controller that serves brokers, and times its requests."""
        self._attach(host, ControllerCollector(self._process(host, listeners, cluster)), lambda: None)

    def _process(self, host: Host, listeners: Iterable[ListenerView], cluster: ClusterPart) -> ProcessSources:
        return ProcessSources(host, tuple(listeners), cluster, self.loop, self._disk, self.started_s)

    def _attach(self, host: Host, collector: Collector, problem: Callable[[], str | None]) -> None:
        self._collector, self._problem = collector, problem
        self.scraper.forget_pages()
        host.limited_lines["pages of metrics failed without a line"] = self._server.faults
        times = host.interceptors.times
        times.is_timed, times.on_sample = True, AnswerSending(self._clock).note

    def close(self) -> None:
        """Stops serving."""
        self.loop.stop()
        self._server.close()
        self.scraper.close()
        self._collector.close()

    def families(self, breaks: Breaks) -> AsyncIterator[Family]:
        """Yields all current families, also those without a sample."""
        return self._collector.collect(breaks)

    async def _metrics(self, request: HttpRequest) -> HttpResponse:
        return await self.scraper.page(request)

    async def _health(self, request: HttpRequest) -> HttpResponse:
        return plain(200, "ok")

    async def _readiness(self, request: HttpRequest) -> HttpResponse:
        problem = self._problem()
        return plain(200, "ready") if problem is None else plain(503, problem)


def unready(broker: Broker) -> str | None:
    """Returns the reason why clients should use another broker; None if they can use this one."""
    if broker.node.state is not NodeState.RUNNING:
        return str(broker.node.state.value)
    if not broker.image.is_active(broker.node.node_id):
        return "fenced by the controller"
    if not broker.logs.online_dirs():
        return "every log directory has failed"
    return None
