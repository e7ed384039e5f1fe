"""Control requests that show a broker's requests, records, groups and state. Methods raise RequestError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.config.listeners import ListenerAddress
from broker.dispatch.broker import Broker
from broker.network.listener import Listener
from programs.control.description import describe_broker
from programs.control.fields import Fields
from programs.control.group_view import describe_group, list_groups
from programs.control.http import ControlAnswer, ControlRequest, content_of
from programs.control.reading_faults import MAX_INT, api_key
from programs.control.record_view import ISOLATION_LEVELS, offsets_of, partitions_here, records_of
from programs.control.recorder import DEFAULT_LIMIT, MAX_LIMIT, Recorder
from programs.control.releases import RELEASES
from programs.control.request_view import name_of_api
from programs.control.server import ControlConnection

DEFAULT_RECORDS: Final = 1_000
MAX_RECORDS: Final = 100_000


class LookingIn:
    """Shows requests, records, groups and the broker as a whole."""

    def __init__(
        self,
        broker: Broker,
        recorder: Recorder,
        listeners: Sequence[Listener],
        advertised: Sequence[ListenerAddress],
        version: str,
    ) -> None:
        self._broker = broker
        self._recorder = recorder
        self._listeners = listeners
        self._advertised = advertised
        self._version = version

    async def recording(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Shows whether requests are recorded."""
        return ControlAnswer(200, self._recorder.content)

    async def record(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Starts or stops the recording of requests."""
        fields = Fields(content_of(request))
        is_recording = fields.flag("enabled")
        limit = fields.number("limit", at_least=1, at_most=MAX_LIMIT)
        fields.end()
        self._recorder.record(is_recording is not False, limit)
        return ControlAnswer(200, self._recorder.content)

    async def forget(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Deletes the recorded requests."""
        self._recorder.forget()
        return ControlAnswer(200, self._recorder.content)

    async def requests(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Shows recorded requests."""
        fields = Fields(request.query, is_query=True)
        api = fields.text("api")
        wanted_api = None if api is None else name_of_api(api_key(int(api) if api.isdecimal() else api))
        client_id, topic, group = fields.text("client_id"), fields.text("topic"), fields.text("group")
        after, limit = fields.number("after") or 0, fields.number("limit", at_least=1) or DEFAULT_LIMIT
        with_body = fields.flag("bodies") is True
        fields.end()
        entries = [
            entry for entry in self._recorder.entries(after) if entry.concerns(wanted_api, client_id, topic, group)
        ]
        return ControlAnswer(200, {"requests": [entry.content(with_body=with_body) for entry in entries[:limit]]})

    async def records(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Shows the records of a topic's partitions."""
        fields = Fields(request.query, is_query=True)
        topic, index = fields.needed_text("topic"), fields.number("partition", at_most=MAX_INT)
        offset, limit = fields.number("offset"), fields.number("limit", at_least=1, at_most=MAX_RECORDS)
        isolation = ISOLATION_LEVELS[fields.choice("isolation", ISOLATION_LEVELS) or "read_uncommitted"]
        fields.end()
        partitions = partitions_here(self._broker, topic, index)
        records = [
            record
            for partition in partitions
            for record in records_of(partition, isolation, offset, limit or DEFAULT_RECORDS)
        ]
        return ControlAnswer(
            200, {"records": records, "partitions": [offsets_of(partition) for partition in partitions]}
        )

    async def groups(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Lists the groups that this broker coordinates."""
        return ControlAnswer(200, {"groups": list_groups(self._broker)})

    async def group(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Shows one group."""
        return ControlAnswer(200, await describe_group(self._broker, request.path[-1]))

    async def describe(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Shows the broker, and the topics of its cluster."""
        return ControlAnswer(200, describe_broker(self._broker, self._listeners, self._advertised, self._version))

    async def releases(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Lists the releases of Apache Kafka that the broker can pretend to be."""
        return ControlAnswer(200, {"releases": list(RELEASES)})
