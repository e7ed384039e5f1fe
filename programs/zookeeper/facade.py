"""This broker's part in ZooKeeper: it registers, takes part in the election, and publishes the registry while it is
active.

It works in turns, one after another. Each turn brings the znodes to their target state. Changes of the image, changed
znodes and new connections only make a turn due. After a failed turn and a pause, the next turn reads everything again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from broker.clock import Clock, Timer
from broker.logging import get_logger
from coordinator.cluster.changes import Delta
from programs.zookeeper.active import Active
from programs.zookeeper.client import Conflict, ZookeeperRefused, ZookeeperUnavailable
from programs.zookeeper.election import ControllerElection, Term
from programs.zookeeper.registration import Registration, Standing
from programs.zookeeper.session import ZookeeperSession
from protocol.backoff import Backoff
from protocol.errors import KafkaError

RETRIES: Final = Backoff(initial_ms=100, max_ms=10_000)
"""The pauses after failed turns."""

TOUCH_MS: Final = 1_000
"""Interval at which the active broker checks that the remote controllers still answer. Without them its image is
outdated, and it resigns in favour of another broker."""

CATCH_UP_MS: Final = 100
"""Interval at which a newly active broker checks whether its image has caught up with the cluster."""

logger = get_logger(__name__)


class FollowedControllers(NamedTuple):
    """The controllers in other processes, from which this broker fetches the metadata."""

    are_in_touch: Callable[[], bool]
    """True if they have answered within the broker's session timeout."""
    image_as_of_ms: Callable[[], int]
    """The monotonic time up to which the image has all of the cluster's metadata."""


class Facade:
    """Runs turns while the broker runs."""

    def __init__(
        self,
        session: ZookeeperSession,
        registration: Registration,
        election: ControllerElection,
        active: Active,
        clock: Clock,
        cluster_id: str,
        controllers: FollowedControllers | None,
    ) -> None:
        """`controllers` is None if this broker is its own controller."""
        self._session = session
        self._registration = registration
        self._election = election
        self._active = active
        self._clock = clock
        self._cluster_id = cluster_id
        self._controllers = controllers
        self._due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._failures = 0
        """Failed turns in a row."""
        self._standing: Standing | None = None
        self._term: Term | None = None
        self._elected_ms = 0
        """The monotonic time at which the term began."""
        self._logged_reason = ""
        """The reason of the last logged failure."""
        self._connected = True

    def begin(self) -> None:
        """Starts the first turn, and each later turn that is due."""
        self._due.set()
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Stops the turns."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def changed(self, delta: Delta) -> None:
        """Records changes of the image."""
        if self._active.note(delta):
            self._due.set()

    def znode_changed(self, path: str | None) -> None:
        """Records that a watched znode has changed. None means that the connection was opened or closed, so that
        everything must be read again."""
        if path is None:
            self._active.forget()
            self._tell_connection()
        else:
            self._active.znode_changed(path)
        self._due.set()

    def _tell_connection(self) -> None:
        connected = self._session.connected
        if connected != self._connected:
            self._connected = connected
            if connected:
                logger.info("connected to ZooKeeper again")
            else:
                logger.warning("the connection to ZooKeeper is lost; clients are served, znodes are not updated")

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            if self._session.connected:
                await self._turn_or_retry()

    async def _turn_or_retry(self) -> None:
        try:
            await self._turn()
        except (ZookeeperUnavailable, Conflict) as error:
            self._retry("znodes could not be updated now", str(error), is_fault=False)
        except (ZookeeperRefused, KafkaError) as error:
            self._retry("inputs from ZooKeeper cannot be carried out now", str(error))
        except Exception as error:
            logger.error("an update of ZooKeeper failed", exc_info=error)
            self._again()

    def _retry(self, event: str, reason: str, *, is_fault: bool = True) -> None:
        """Schedules another turn after a pause. Logs each reason once; a transient failure only if it persists."""
        if reason != self._logged_reason and (is_fault or self._retry_ms == RETRIES.max_ms):
            self._logged_reason = reason
            logger.warning(event, reason=reason)
        self._again()

    def _again(self) -> None:
        self._active.forget()
        self._again_after(self._retry_ms)
        self._failures += 1

    @property
    def _retry_ms(self) -> int:
        """The pause after a turn that fails now."""
        return RETRIES.delay_ms(self._failures + 1)

    def _again_after(self, delay_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_after(delay_ms, self._due.set)

    async def _turn(self) -> None:
        now_ms = self._clock.now_ms()
        keep = partial(self._registration.keep, cluster_id=self._cluster_id, now_ms=now_ms)
        standing, is_new = await self._session.call(keep)
        self._tell_standing(standing, is_new)
        if standing is not Standing.OURS:
            self._again()  # a stale znode is deleted with its session, which the watch reports too
            return
        term = await self._elected(now_ms)
        if self._controllers is not None and (term is not None or not self._is_in_touch):
            self._again_after(TOUCH_MS)
        if term != self._term:
            self._active.forget()
            self._tell_term(term)
            self._term, self._elected_ms = term, self._clock.monotonic_ms()
        if term is not None and not self._is_current:
            self._again_after(CATCH_UP_MS)
        elif term is not None and await self._active.turn(self._session, term, now_ms):
            self._due.set()
        self._failures, self._logged_reason = 0, ""

    @property
    def _is_current(self) -> bool:
        """True if the image has everything that the previous active broker can have published. Otherwise those znodes
        would be deleted and created again."""
        return self._controllers is None or self._controllers.image_as_of_ms() > self._elected_ms

    async def _elected(self, now_ms: int) -> Term | None:
        """Returns this broker's term; None while another broker is active or no controller answers."""
        if self._is_in_touch:
            return await self._session.call(partial(self._election.stand, now_ms=now_ms))
        await self._session.call(self._election.resign)
        return None

    @property
    def _is_in_touch(self) -> bool:
        return self._controllers is None or self._controllers.are_in_touch()

    def _tell_term(self, term: Term | None) -> None:
        if term is not None:
            logger.info("active in ZooKeeper", controller_epoch=term.epoch)
        elif self._is_in_touch:
            logger.info("another broker is active in ZooKeeper")
        else:
            logger.warning("no longer active in ZooKeeper: no controller answers this broker")

    def _tell_standing(self, standing: Standing, is_new: bool) -> None:
        path = self._registration.path
        if is_new:
            logger.info("registered in ZooKeeper", znode=path)
        elif standing is not self._standing and standing is Standing.STALE:
            logger.warning("waiting for the end of this broker's last session with ZooKeeper", znode=path)
        elif standing is not self._standing and standing is Standing.TAKEN:
            logger.error("another broker has this id in ZooKeeper", znode=path)
        self._standing = standing
