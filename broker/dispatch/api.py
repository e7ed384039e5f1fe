"""The table of APIs that everything else is derived from: dispatch, ApiVersions, docs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias

from broker.request.authorisation import AuthorizationRule
from protocol.api_key import ApiKey
from protocol.errors import KafkaError
from protocol.schema import fields_of, identity
from protocol.versions import Versions

Handle: TypeAlias = Callable[[Any], Coroutine[Any, Any, Any]]
"""(Call[request]) → response."""

Here: TypeAlias = Callable[[Any, Handle], Coroutine[Any, Any, Any]]
"""(call, handle) → the response: `handle` answers the part that this function does not answer."""


def before(step: Here | None, handle: Handle) -> Handle:
    """Returns a handler that calls `step` with `handle`; `handle` itself if there is no step."""
    return handle if step is None else lambda call: step(call, handle)


class WireParser(NamedTuple):
    """Parses usual requests of an API in place and serves them, without messages."""

    parse: Callable[[Any, Any, memoryview, bytes, int], object | None]
    """(broker, context, frame, its front, position of the body) → the request; None if the codec must decode it."""
    serve: Callable[[Any, Any, Any], object]
    """(broker, context, request) → the same results as a handler's."""
    first_version: int


class Entries(NamedTuple):
    """A list of a request whose entries are answered separately, by the names of the fields."""

    requested: str
    answered: str
    nested: Entries | None = None
    """The list of an entry by which the entry is split too, if any."""
    key: str = ""
    """The field of an answer that names its entry, if entries of the same name share an answer."""
    repeated: Callable[[Any], object] | None = None
    """(answer) → the answer to an entry that is named again; if None, the last answer counts."""


SHARE_PARTITIONS: Final = Entries(
    "topics", "results", Entries("partitions", "partitions", key="partition"), key="topic_id"
)
"""The entries of the requests for the state of share partitions."""


class GroupProtocol(NamedTuple):
    """A protocol of groups that is served once it is enabled."""

    feature: str
    """The feature that the cluster must have finalized."""
    name: str | None = None
    """The name that the operator may remove from group.coordinator.rebalance.protocols, if any."""


CONSUMER_GROUPS: Final = GroupProtocol("group.version", "consumer")
SHARE_GROUPS: Final = GroupProtocol("share.version")
STREAMS_GROUPS: Final = GroupProtocol("streams.version", "streams")


class AnsweredBy(Enum):
    """The process that answers the requests of an API."""

    BROKER = auto()
    """The process that received the request."""
    CONTROLLER = auto()
    """The active controller: a broker whose controllers are elsewhere forwards the request (Kafka's
    ApiKeys.forwardable)."""


CONTROLLER: Final = AnsweredBy.CONTROLLER


@dataclass(frozen=True, eq=False, repr=False)  # each generated method costs time at the start
class Api:
    """A row of the table of APIs."""

    request: type
    response: type
    handle: Handle | None = None
    """(Call[request]) → response (or its body, encoded, or its frame's buffers), None for no answer, or a parked
    call. None if the controller does all; not called for a forwarded request."""
    _: KW_ONLY
    authorize: AuthorizationRule
    """The authorization of its requests. A row can't be made without one."""
    answered_by: AnsweredBy = AnsweredBy.BROKER
    here: Here | None = None
    """(call, handle) → the response, for an API of the controller's that the receiving broker handles in part;
    `handle` has the controller answer the rest."""
    protocol: GroupProtocol | None = None
    """The protocol to which the API belongs. Until it is enabled, requests are rejected with UNSUPPORTED_VERSION before
    their authorization."""
    strict_since: int | None = None
    """The first version in which changes beyond the client's quota are rejected (KIP-599). In earlier versions they are
    made, and the client is throttled. None for requests without such a quota."""
    unsupported: Callable[[Apis], object] | None = None
    """Returns the response, in version 0, to a request in a version that is not served; without it such a request
    closes the connection."""
    translate: Callable[[KafkaError, int], KafkaError] | None = None
    """(error, version) → the error that the client gets instead of an error that the handler raises."""
    explains: bool = False
    """True if a rejection always has a message, even if the message only repeats the code."""
    reject: Callable[[Any, KafkaError], object] | None = None
    """(request, error) → the response that rejects the whole request, if the schemas don't say enough to
    derive it (rejection.py)."""
    entries: tuple[Entries, ...] = ()
    """The lists by which a large request is split, of which a request has one."""
    wire: WireParser | None = None
    to_its_end: Callable[[Any, Coroutine[Any, Any, Any]], Awaitable[Any]] | None = None
    """(broker, work) → the work's result, for an API whose work continues if its client disconnects."""

    @property
    def key(self) -> ApiKey:
        return ApiKey(identity(self.request).key)

    @property
    def versions(self) -> Versions:
        """The versions that are served."""
        return self.key.versions

    def begins_with_throttle_time(self, version: int) -> bool:
        """True if the first field of a response is its client's throttle time (KIP-124)."""
        fields = fields_of(self.response)
        first = next((field for field in fields if version in field.wire.versions and field.wire.tag is None), None)
        return first is not None and first.name == "throttle_time_ms"


class Apis:
    """The rows of the table, each in a module that is imported at the API's first request."""

    def __init__(self, package: str, names: Sequence[str]) -> None:
        """`names` are the names of APIs, and of the modules in `package`, or in its packages, that have their rows."""
        self._package = package
        self._names = {int(ApiKey[name.rpartition(".")[2].upper()]): name for name in names}
        self._rows: dict[int, Api] = {}
        """The rows whose modules are imported."""

    def __iter__(self) -> Iterator[Api]:
        """Yields all rows, in the order of the table."""
        for key in self._names:
            row = self.find(key)
            assert row is not None
            yield row

    def ranges(self) -> Iterator[tuple[ApiKey, Versions]]:
        """Yields each API with the versions that are served."""
        for key in map(ApiKey, self._names):
            yield key, key.versions

    def find(self, key: int) -> Api | None:
        """Returns the row of an API; None when it is not served."""
        row = self._rows.get(key)
        if row is None and key in self._names:
            row = self._rows[key] = import_module(self.module_of(key)).API
        return row

    def module_of(self, key: int) -> str:
        """Returns the name of the module that has the row of an API."""
        return f"{self._package}.{self._names[key]}"
