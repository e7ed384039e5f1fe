"""The table of APIs that everything else is derived from: dispatch, ApiVersions, docs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias

from broker.exchange.authorisation import Requires
from protocol.api_key import ApiKey
from protocol.errors import KafkaError
from protocol.schema import Versions, fields_of, identity

Handle: TypeAlias = Callable[[Any], Coroutine[Any, Any, Any]]
"""(Call[request]) → response."""

Guard: TypeAlias = Callable[[Any, Handle], Coroutine[Any, Any, Any]]
"""(call, its handler) → the response, of which the handler answers what the client may ask for."""

Here: TypeAlias = Callable[[Any, Handle], Coroutine[Any, Any, Any]]
"""(call, forward) → the response, of which the controller answers what is left."""


class WireParser(NamedTuple):
    """Parses usual requests of an API in place and serves them, without messages."""

    parse: Callable[[Any, Any, memoryview, bytes, int], object | None]
    """(broker, context, frame, its front, position of the body) → the request; None for one that the codec decodes."""
    serve: Callable[[Any, Any, Any], object]
    """(broker, context, request) → what a handler may return."""
    first_version: int


class Entries(NamedTuple):
    """A list of a request whose entries are answered each by itself, by the names of the fields."""

    requested: str
    answered: str
    nested: str = ""
    """The list of an entry that is split too, if it has one."""
    nested_answers: str = ""


class Api(NamedTuple):
    """A row of the table of APIs."""

    request: type
    response: type
    handle: Callable[[Any], Coroutine[Any, Any, Any]]
    """(Call[request]) → response (or its body, encoded, or its frame's buffers), None for no answer, or a parked
    call."""
    requires: Requires
    """The operations that a client needs to be authorised for, and whether dispatcher or handler checks that."""
    unsupported: Callable[[Apis], object] | None = None
    """Returns the response, in version 0, to a request in a version that is not served; without it such a request
    closes the connection."""
    oldest: int = 0
    """The first version that is served, where that is not the message's."""
    refuse: Callable[[Any, KafkaError], object] | None = None
    """(request, error) → the response that refuses all of it, for an API whose response has no error of its own."""
    is_forwarded: bool = False
    """True where the controllers elsewhere answer, who ask what the client may do."""
    entries: tuple[Entries, ...] = ()
    """The lists by which a large request is split, of which a request has one."""
    here: Here | None = None
    """(call, forward) → the response, for an API of which a broker does a part before it forwards the rest."""
    wire: WireParser | None = None

    @property
    def key(self) -> ApiKey:
        return ApiKey(identity(self.request).key)

    @property
    def versions(self) -> Versions:
        """The versions that are served."""
        first, last = identity(self.request).versions
        return Versions(max(first, self.oldest), last)

    def begins_with_throttle_time(self, version: int) -> bool:
        """True where the first field of a response says for how long its client is throttled (KIP-124)."""
        fields = fields_of(self.response)
        first = next((one for one in fields if version in one.wire.versions and one.wire.tag is None), None)
        return first is not None and first.name == "throttle_time_ms"


class Guards(Protocol):
    """The guards of APIs whose handlers do not ask themselves what the client may do."""

    def find(self, key: ApiKey) -> Guard | None:
        """Returns the guard of an API; None where there is nothing to guard, or its handler asks."""
        ...


class Apis:
    """The rows of the table, each in a module that is imported at the API's first request."""

    def __init__(self, package: str, names: Sequence[str]) -> None:
        """`names` are those of APIs, and of the modules of `package`, or of packages in it, that have their rows."""
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

    def find(self, key: int) -> Api | None:
        """Returns the row of an API; None when it is not served."""
        row = self._rows.get(key)
        if row is None and key in self._names:
            row = self._rows[key] = import_module(self.module_of(key)).API
        return row

    def module_of(self, key: int) -> str:
        """Returns the name of the module that has the row of an API."""
        return f"{self._package}.{self._names[key]}"
