"""The sessions of brokers at the active controller: soft state, which no record has, and which effects change.

A session belongs to a broker and its epoch. It begins with the first heartbeat, or for an unfenced broker when the
controller becomes active. It ends `session_ms` after the last heartbeat.

Source: Kafka's BrokerHeartbeatManager and BrokerHeartbeatTracker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from coordinator.cluster.image import Image

NOTHING_READ = -1
"""The metadata offset of a broker that has not reported how much it has read."""


class Contact(NamedTuple):
    """The last heartbeat of a broker."""

    epoch: int
    at_ms: int
    metadata_offset: int = NOTHING_READ
    is_extended: bool = False
    """True if the session was extended since the last heartbeat, because this process was late."""


class BrokerSessions:
    """The sessions of all brokers. Times are from a monotonic clock.

    The broker in the controller's own process has no session: it sends no heartbeats while it runs, and it applies
    metadata before a client sees that they are committed.
    """

    def __init__(self, session_ms: int, own_id: int, last_offset: Callable[[], int]) -> None:
        """`last_offset` returns the offset of the last record that is appended."""
        self._last_offset = last_offset
        self.session_ms = session_ms
        self.own_id = own_id
        self._contacts: dict[int, Contact] = {}
        self._stop_offsets: dict[int, int] = {}
        """For each broker in a controlled shutdown, the offset of the records that moved its leaders."""
        self._registered_at: dict[int, int] = {}

    def begin(self, image: Image, now_ms: int) -> None:
        """Begins a session for every unfenced broker, in which it must find this controller."""
        for broker in image.brokers.values():
            if not broker.fenced and broker.broker_id != self.own_id:
                self._contacts[broker.broker_id] = Contact(broker.epoch, now_ms)

    def heard(self, broker_id: int, epoch: int, metadata_offset: int, now_ms: int) -> None:
        """Records a heartbeat of the broker's current epoch."""
        self._contacts[broker_id] = Contact(epoch, now_ms, metadata_offset)

    def touch(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """Extends a broker's session for a heartbeat that has arrived and isn't decided on yet."""
        contact = self._contacts.get(broker_id)
        if contact is not None and contact.epoch == epoch:
            self._contacts[broker_id] = contact._replace(at_ms=now_ms, is_extended=False)

    def registered(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """Records the offset of the broker's registration record, which was appended last; the broker may be unfenced
        once it has read it."""
        offset = self._registered_at[broker_id] = self._last_offset()
        if broker_id == self.own_id:
            self.heard(broker_id, epoch, offset, now_ms)

    def registered_at(self, broker_id: int) -> int | None:
        """Returns the offset of the broker's registration record; None if the broker registered with an earlier
        controller.
        """
        return self._registered_at.get(broker_id)

    def end(self, broker_id: int) -> None:
        """Ends the broker's session, because it is fenced, stops, or has a new incarnation."""
        self._contacts.pop(broker_id, None)
        self._stop_offsets.pop(broker_id, None)

    def forget(self, broker_id: int) -> None:
        """Forgets a broker that is no longer registered."""
        self.end(broker_id)
        self._registered_at.pop(broker_id, None)

    def is_live(self, image: Image, broker_id: int, now_ms: int) -> bool:
        """True if the registered incarnation has a session."""
        broker, contact = image.brokers.get(broker_id), self._contacts.get(broker_id)
        return (
            broker is not None
            and contact is not None
            and contact.epoch == broker.epoch
            and self._lasts(broker_id, contact, now_ms)
        )

    def _lasts(self, broker_id: int, contact: Contact, now_ms: int) -> bool:
        return broker_id == self.own_id or now_ms <= contact.at_ms + self.session_ms

    def stale(self, now_ms: int) -> int | None:
        """Returns the broker whose session ended first; None if no session has ended."""
        over = [
            (contact.at_ms, broker_id)
            for broker_id, contact in self._contacts.items()
            if not self._lasts(broker_id, contact, now_ms)
        ]
        return min(over)[1] if over else None

    def extend(self, ms: int, now_ms: int) -> None:
        """Extends all sessions by a time in which this process could not read heartbeats. A session is extended only
        once between two heartbeats, so that a dead broker is noticed even if this process is often late.
        """
        for broker_id, contact in self._contacts.items():
            if not contact.is_extended:
                at_ms = min(contact.at_ms + ms, now_ms)
                self._contacts[broker_id] = contact._replace(at_ms=at_ms, is_extended=True)

    # Controlled shutdown

    def stops(self, broker_id: int) -> None:
        """Records the offset of the last record that was appended when the broker began its controlled shutdown."""
        self._stop_offsets.setdefault(broker_id, self._last_offset())

    def is_stopping(self, broker_id: int) -> bool:
        """True if this controller knows that the broker is in a controlled shutdown."""
        return broker_id in self._stop_offsets

    def may_stop(self, image: Image, broker_id: int) -> bool:
        """True if all other active brokers have read the new leaders of the broker's partitions."""
        return self._stop_offsets.get(broker_id, NOTHING_READ) <= self._lowest_active_offset(image, broker_id)

    def _lowest_active_offset(self, image: Image, besides: int) -> int:
        others = (broker_id for broker_id in image.brokers if broker_id not in (self.own_id, besides))
        offsets = [self._offset(broker_id) for broker_id in others if image.is_active(broker_id)]
        return min(offsets, default=image.offset)

    def _offset(self, broker_id: int) -> int:
        contact = self._contacts.get(broker_id)
        return NOTHING_READ if contact is None else contact.metadata_offset
