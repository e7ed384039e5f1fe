"""The table of APIs that everything else is derived from: dispatch, ApiVersions, docs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from broker.exchange.authorisation import Requires
from protocol.api_key import ApiKey
from protocol.schema import Versions, identity


class Api(NamedTuple):
    """A row of the table of APIs."""

    request: type
    response: type
    handle: Callable[[Any], Coroutine[Any, Any, Any]]
    """(Call[request]) → response (or its body, encoded, or its frame's buffers), None for no answer, or what is
    parked."""
    requires: Requires
    """What a client has to be allowed to do, and who asks."""
    unsupported: Callable[[Apis], object] | None = None
    """The response, in version 0, to who asks in a version that is not served; without one that closes the
    connection."""

    @property
    def key(self) -> ApiKey:
        return ApiKey(identity(self.request).key)

    @property
    def versions(self) -> Versions:
        return identity(self.request).versions


class Apis:
    """The rows of the table, each in a module that is imported when its API is first asked for."""

    def __init__(self, package: str, names: Sequence[str]) -> None:
        """The modules are `package`'s, and have the names of their APIs."""
        self._package = package
        self._names = {int(ApiKey[name.upper()]): name for name in names}
        self._found: dict[int, Api] = {}

    def __iter__(self) -> Iterator[Api]:
        """All rows, in the order of the table."""
        for key in self._names:
            found = self.find(key)
            assert found is not None
            yield found

    def find(self, key: int) -> Api | None:
        """The row of an API; None when it is not served."""
        found = self._found.get(key)
        if found is None and key in self._names:
            found = self._found[key] = import_module(f"{self._package}.{self._names[key]}").API
        return found
