"""/metrics, /healthz and /readyz of one broker, from before its start to its end."""

from __future__ import annotations

from typing import Final

from broker.clock import Clock
from broker.metadata.node import NodeState
from broker.metrics.collect import Collector
from broker.metrics.http import HttpRequest, HttpResponse, plain
from broker.metrics.loop_watch import LoopWatch
from broker.metrics.scrape import Scraper
from broker.metrics.server import MetricsServer
from broker.metrics.sources import Sources

NOT_STARTED: Final = "starting"


class MetricsEndpoint:
    """`listen` before the broker starts, `attach` once it serves, `close` at the end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.loop = LoopWatch(clock)
        pages = {"/metrics": self._metrics, "/healthz": self._health, "/readyz": self._readiness}
        self._server = MetricsServer(pages, clock)
        self._sources: Sources | None = None
        self._collector: Collector | None = None
        self.scraper: Scraper | None = None
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
        return port

    @property
    def connection_count(self) -> int:
        """Scrapers that are connected."""
        return len(self._server.connections)

    def attach(self, sources: Sources) -> None:
        """The broker serves clients: it has metrics from now on, and its requests are timed."""
        self._sources = sources
        self._collector = Collector(sources)
        self.scraper = Scraper(self._collector.collect, self._clock)
        sources.broker.interceptors.times.is_timed = True

    def close(self) -> None:
        """Serves nobody any more."""
        self.loop.stop()
        self._server.close()
        if self._collector is not None:
            self._collector.close()

    async def _metrics(self, request: HttpRequest) -> HttpResponse:
        return plain(503, NOT_STARTED) if self.scraper is None else await self.scraper.page(request)

    async def _health(self, request: HttpRequest) -> HttpResponse:
        return plain(200, "ok")

    async def _readiness(self, request: HttpRequest) -> HttpResponse:
        problem = NOT_STARTED if self._sources is None else unready(self._sources)
        return plain(200, "ready") if problem is None else plain(503, problem)


def unready(sources: Sources) -> str | None:
    """Returns why clients should go elsewhere; None while they should not."""
    broker = sources.broker
    if broker.node.state is not NodeState.RUNNING:
        return str(broker.node.state.value)
    if not broker.image.is_active(broker.node.node_id):
        return "fenced by the controller"
    if not broker.logs.online_dirs():
        return "every log directory has failed"
    return None
