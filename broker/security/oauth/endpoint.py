"""The keys of an issuer at a URL: fetched in a thread, at intervals, and when a token names an unknown key.

A failed fetch is retried with pauses that double; meanwhile the keys of the last fetch are used. An unknown key id
causes one fetch and is remembered, so that neither such tokens nor invented ids make the broker fetch all the time.

Source: org.apache.kafka.common.security.oauthbearer.internals.secured.RefreshingHttpsJwks, Retry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from broker.clock import Clock, Timer
from broker.logging import get_logger
from broker.security.oauth.keys import KeySet, key_set
from protocol.backoff import Backoff

MISSING_MS: Final = 60_000
"""Time for which a key is remembered as missing (MISSING_KEY_ID_CACHE_IN_FLIGHT_MS)."""

MISSING_KEYS: Final = 16
"""Maximum number of remembered missing keys (MISSING_KEY_ID_CACHE_MAX_ENTRIES)."""

MAX_KID_CHARACTERS: Final = 1_000
"""Maximum length of a key id that causes a fetch (MISSING_KEY_ID_MAX_KEY_LENGTH)."""

MIN_PAUSE_MS: Final = 5_000
"""Minimum time between two fetches for missing keys, whatever their ids: a client can invent any number of ids."""

FIRST_PAUSE_MS: Final = 1_000
"""Minimum time between two series of attempts while no keys were ever fetched."""

logger = get_logger(__name__)


class RefreshTimes(NamedTuple):
    """The interval and the retries of fetches."""

    refresh_ms: int
    retry_ms: int
    """The first pause after a failed fetch."""
    retry_max_ms: int
    """Time for which a failed fetch is retried."""


class FetchThread(Protocol):
    """Runs blocking work in a thread."""

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None: ...

    def abandon(self) -> None: ...


class JwksEndpoint:
    """The keys of one issuer, from `begin` to `close`."""

    def __init__(
        self, fetch: Callable[[], bytes], threads: FetchThread, clock: Clock, times: RefreshTimes, listener: str
    ) -> None:
        """`fetch` is called in a thread, and raises an error with the reason if it can't get keys."""
        self.keys: KeySet | None = None
        """The keys; None until they are first fetched."""
        self._fetch = fetch
        self._threads = threads
        self._clock = clock
        self._times = times
        self._listener = listener
        self._fetched: KeySet | None = None
        self._is_fetching = False
        self._is_closed = False
        self._failures = 0
        self._retries_until_ms = 0
        self._missing: dict[str, int] = {}
        """For each missing key, the time from which it may cause a fetch again."""
        self._next_search_ms = 0
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Fetches the keys now and at intervals."""
        if self._is_fetching or self._is_closed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._is_fetching, self._failures = True, 0
        self._retries_until_ms = self._clock.monotonic_ms() + self._times.retry_max_ms
        self._try()

    def close(self) -> None:
        """Stops fetching."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._threads.abandon()

    def miss(self, kid: str) -> None:
        """Fetches the keys because a token names a missing key, unless it has caused a fetch recently."""
        now_ms = self._clock.monotonic_ms()
        if len(kid) > MAX_KID_CHARACTERS or self._missing.get(kid, now_ms) > now_ms or now_ms < self._next_search_ms:
            return
        self._missing.pop(kid, None)
        while len(self._missing) >= MISSING_KEYS:
            del self._missing[next(iter(self._missing))]
        self._missing[kid] = now_ms + MISSING_MS
        self._next_search_ms = now_ms + MIN_PAUSE_MS
        self.begin()

    def _try(self) -> None:
        if not self._is_closed:
            self._threads.run(self._work, self._done)

    def _work(self) -> None:
        self._fetched = key_set(self._fetch())

    def _done(self, error: BaseException | None) -> None:
        if self._is_closed:
            return
        if error is None:
            self._take()
            return
        self._failures += 1
        now_ms = self._clock.monotonic_ms()
        backoff = Backoff(initial_ms=self._times.retry_ms, max_ms=self._times.retry_max_ms)
        pause_ms = min(backoff.delay_ms(self._failures), self._retries_until_ms - now_ms)
        if pause_ms > 0:
            self._timer = self._clock.call_after(pause_ms, self._try)
            return
        logger.warning("the issuer's keys cannot be fetched", listener=self._listener, reason=str(error) or repr(error))
        self._again_after(self._times.refresh_ms if self.keys else max(self._times.retry_max_ms, FIRST_PAUSE_MS))

    def _take(self) -> None:
        is_first, self.keys = self.keys is None, self._fetched
        assert self.keys is not None
        for kid in self.keys.kids:
            self._missing.pop(kid, None)
        if is_first:
            logger.info("the issuer's keys were fetched", listener=self._listener, keys=len(self.keys.keys))
        self._again_after(self._times.refresh_ms)

    def _again_after(self, pause_ms: int) -> None:
        self._is_fetching = False
        self._timer = self._clock.call_after(pause_ms, self.begin)
