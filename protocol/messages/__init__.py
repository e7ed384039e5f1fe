"""One module per API, named as its key: `fetch.py` has FetchRequest, FetchResponse and their parts.

Nothing is imported here: a broker loads the APIs that it serves. Who wants them all looks them up by naming
convention.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from protocol.api_key import ApiKey


class Messages(NamedTuple):
    """The two messages of one API, and the module that has them."""

    module: str
    request: type
    response: type


def messages_of(api: ApiKey) -> Messages:
    """Imports the module of an API; FETCH gives `protocol.messages.fetch`, FetchRequest and FetchResponse."""
    module = f"{__name__}.{api.name.lower()}"
    prefix = api.name.title().replace("_", "")
    loaded = import_module(module)
    return Messages(module, getattr(loaded, f"{prefix}Request"), getattr(loaded, f"{prefix}Response"))
