"""One module for each API, named after its key: `fetch.py` has FetchRequest, FetchResponse and their parts.

Nothing is imported here, because a broker imports only the APIs that it serves. `messages_of` finds a module by its
name.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from protocol.api_key import ApiKey


class Messages(NamedTuple):
    """The request and response of an API, and their module."""

    module: str
    request: type
    response: type


def messages_of(api: ApiKey) -> Messages:
    """Imports the module of an API; FETCH gives `protocol.messages.fetch`, FetchRequest and FetchResponse."""
    module = f"{__name__}.{api.name.lower()}"
    prefix = api.name.title().replace("_", "")
    loaded = import_module(module)
    return Messages(module, getattr(loaded, f"{prefix}Request"), getattr(loaded, f"{prefix}Response"))
