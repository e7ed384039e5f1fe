"""The methods of every broker under test: topics, records, groups, waits, faults and the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Unpack
from urllib.parse import quote

from odradek.testing.clock import BrokerClock
from odradek.testing.control import Control, JsonObject
from odradek.testing.errors import BrokerError, ControlError
from odradek.testing.faults import Fault, FaultFields
from odradek.testing.views import Group, GroupOffset, Record, RecordedRequest, group_of, record_of, request_of
from odradek.testing.waiting import WAIT_S, wait_until
from odradek.testing.wire import BROKER_DEFAULT, create_topic, delete_topic

__tracebackhide__ = True

NOT_FOUND: Final = 404
MOST: Final = 100_000
"""Maximum number of records or requests in an answer."""

Isolation = Literal["read_uncommitted", "read_committed"]


class ControlledBroker:
    """A broker that serves. Methods outside of Kafka's own protocol need its control server. They raise BrokerError if
    it has none, and ControlError if it rejects a request."""

    def __init__(self, bootstrap: str, control: str) -> None:
        """`bootstrap` is the HOST:PORT of a listener, `control` that of the control server, or ""."""
        self._bootstrap = bootstrap
        self._control = Control(control)
        self._faults: list[Fault] = []

    @property
    def bootstrap(self) -> str:
        """Returns the address for clients, HOST:PORT (`bootstrap.servers`). Raises BrokerError before a start."""
        return self._bootstrap

    @property
    def control(self) -> Control:
        """Returns the client of the control server."""
        return self._control

    @property
    def control_url(self) -> str:
        """Returns the URL of the control server, for programs in other languages (docs/control.md)."""
        return self.control.url

    @property
    def clock(self) -> BrokerClock:
        """Returns the clock of this broker."""
        return BrokerClock(self._controls())

    def _controls(self) -> Sequence[Control]:
        """Returns the control servers of all its brokers."""
        return (self.control,)

    # Topics

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Creates a topic, waits until it can be written to, and returns its name. Settings that are not given have the
        broker's defaults. Raises BrokerError if the request is rejected."""
        wishes = {"partitions": partitions, "replication_factor": replicas, "configs": dict(configs or {}) or None}
        given = {field: value for field, value in wishes.items() if value is not None}
        self.control.post("/v1/topics", {"topic": name, **given})
        return name

    def delete_topic(self, name: str) -> None:
        """Deletes a topic with its records. Raises BrokerError if the request is rejected."""
        self.control.delete(f"/v1/topics/{_quoted(name)}")

    def records(
        self,
        topic: str,
        *,
        partition: int | None = None,
        offset: int | None = None,
        isolation: Isolation = "read_uncommitted",
        control_records: bool = False,
    ) -> list[Record]:
        """Returns the records of a topic or a partition on this broker, from an offset on, ordered by partition and
        offset, at most 100,000 of a partition. With `control_records` it includes transaction markers."""
        answer = self.control.get(
            "/v1/records", topic=topic, partition=partition, offset=offset, isolation=isolation, limit=MOST
        )
        records = [record_of(topic, entry) for entry in answer["records"]]
        return [record for record in records if control_records or not record.is_control]

    def apply_retention(self, topic: str | None = None) -> None:
        """Applies `retention.ms` and `retention.bytes` now, to one topic or all."""
        self._post_to_all("/v1/retention", _named(topic))

    def compact(self, topic: str | None = None) -> None:
        """Compacts the logs of one topic or all now, even if little is dirty."""
        self._post_to_all("/v1/compaction", _named(topic))

    def flush(self) -> None:
        """Flushes all logs to the device."""
        self._post_to_all("/v1/flush", {})

    def _post_to_all(self, path: str, body: JsonObject) -> None:
        for control in self._controls():
            control.post(path, body)

    # Groups

    def groups(self) -> list[str]:
        """Returns the names of the groups."""
        return [str(entry["group"]) for entry in self.control.get("/v1/groups")["groups"]]

    def group(self, name: str) -> Group | None:
        """Returns a group of any type; None if it doesn't exist."""
        try:
            return group_of(self.control.get(f"/v1/groups/{_quoted(name)}"))
        except ControlError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def wait_for_group(
        self, name: str, *, members: int | None = None, state: str | None = "Stable", timeout_s: float = WAIT_S
    ) -> Group:
        """Waits until a group has the number of members and the state, such as "Stable" or "Empty", and returns it;
        None accepts any. Raises WaitTimeout."""

        def look() -> Group | None:
            group = self.group(name)
            if group is None or state not in (None, group.state):
                return None
            return group if members in (None, len(group.members)) else None

        wishes = (
            f"group {name} to have {'any number of' if members is None else members} members, state {state or 'any'}"
        )
        return wait_until(look, timeout_s, lambda: f"for {wishes}; it is {self.group(name)}")

    def lag(self, group: str, topic: str | None = None) -> int | None:
        """Returns the number of records that a group has not committed, in a topic or in all topics with committed
        offsets. A partition without a commit counts from its start. None means that the group has committed nothing
        there."""
        view = self.group(group)
        if view is None:
            return None
        offsets = {(entry.topic, entry.partition): entry for entry in view.offsets if topic in (None, entry.topic)}
        topics = {name for name, _ in offsets}
        return sum(self._lag_of_topic(name, offsets) for name in topics) if topics else None

    def _lag_of_topic(self, topic: str, offsets: Mapping[tuple[str, int], GroupOffset]) -> int:
        lag = 0
        for partition in self.partitions(topic):
            committed = offsets.get((topic, partition["partition"]))
            start = partition["start_offset"] if committed is None else committed.offset
            end = partition["end_offset"]
            lag += max((end or 0) - (start or 0), 0)
        return lag

    def wait_for_lag(self, group: str, lag: int = 0, *, topic: str | None = None, timeout_s: float = WAIT_S) -> None:
        """Waits until the group has committed offsets and lags by at most `lag` records. Raises WaitTimeout."""

        def look() -> bool | None:
            present = self.lag(group, topic)
            return None if present is None or present > lag else True

        wait_until(
            look, timeout_s, lambda: f"for group {group} to lag by {lag}; {self.lag(group, topic)}: {self.group(group)}"
        )

    # Requests

    def record_requests(self, *, limit: int = MOST) -> None:
        """Starts to record the latest `limit` requests. Deletes those recorded before."""
        for control in self._controls():
            control.delete("/v1/requests")
            control.post("/v1/requests/recording", {"enabled": True, "limit": limit})

    def requests(
        self,
        *,
        api: str | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        group: str | None = None,
        bodies: bool = False,
    ) -> list[RecordedRequest]:
        """Returns recorded requests, the oldest first; `api` is a name such as "Produce". Raises BrokerError if
        requests are not recorded: call `record_requests` first."""
        conditions = {"api": api, "client_id": client_id, "topic": topic, "group": group}
        with_bodies = "true" if bodies else None
        requests: list[RecordedRequest] = []
        for control in self._controls():
            if not control.get("/v1/requests/recording")["enabled"]:
                raise BrokerError("requests are not recorded: call record_requests() first")
            answer = control.get("/v1/requests", **conditions, limit=MOST, bodies=with_bodies)
            requests += map(request_of, answer["requests"])
        return sorted(requests, key=lambda request: request.time_ms)

    # The broker

    def describe(self) -> JsonObject:
        """Returns the description of the broker (docs/control.md): its ids, listeners, clock, connections and
        topics."""
        return self.control.get("/v1/describe")

    def partitions(self, topic: str) -> list[JsonObject]:
        """Returns the partitions of a topic from `describe`: leader, isr, offsets. Raises BrokerError if the topic
        doesn't exist."""
        for entry in self.describe()["topics"]:
            if entry["topic"] == topic:
                partitions: list[JsonObject] = entry["partitions"]
                return partitions
        raise BrokerError(f"there is no topic {topic}")

    def leader(self, topic: str, partition: int = 0) -> int:
        """Returns the id of a partition's leader; -1 means none. Raises BrokerError if the partition doesn't exist."""
        for entry in self.partitions(topic):
            if entry["partition"] == partition:
                return int(entry["leader"])
        raise BrokerError(f"topic {topic} has no partition {partition}")

    def fault(self, **fields: Unpack[FaultFields]) -> Fault:
        """Sets a fault, which is in force at once, and is removed at the end of the `with` block.

            with broker.fault(api="Produce", topic="orders", error="NOT_ENOUGH_REPLICAS", times=2) as fault:
                ...
            assert fault.fired == 2

        docs/control.md has the fields."""
        return self._held(Fault(self._controls(), fields))

    def _held(self, fault: Fault) -> Fault:
        """Keeps a reference to the fault, because it would be removed if its connection were garbage collected."""
        self._faults = [*(earlier for earlier in self._faults if not earlier.is_removed), fault]
        return fault

    def clear_faults(self) -> None:
        """Removes all faults of all clients."""
        for fault in self._faults:
            fault.remove()
        for control in self._controls():
            control.delete("/v1/faults")


class ExternalBroker(ControlledBroker):
    """A running broker, for example in CI or a container. Without `control` it may be any Kafka broker: only topics
    work, through a PLAINTEXT listener, and all other methods raise BrokerError."""

    def __init__(self, bootstrap: str, control: str = "") -> None:
        """Both are HOST:PORT. `bootstrap` may name several brokers, separated by commas; the first creates topics."""
        super().__init__(bootstrap, control)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        if self.control.address:
            return super().create_topic(name, partitions=partitions, replicas=replicas, configs=configs)
        counts = [BROKER_DEFAULT if number is None else number for number in (partitions, replicas)]
        create_topic(self.bootstrap.split(",")[0], name, counts[0], counts[1], configs or {})
        return name

    def delete_topic(self, name: str) -> None:
        if self.control.address:
            super().delete_topic(name)
        else:
            delete_topic(self.bootstrap.split(",")[0], name)


def _named(topic: str | None) -> JsonObject:
    return {} if topic is None else {"topic": topic}


def _quoted(name: str) -> str:
    return quote(name, safe="")
