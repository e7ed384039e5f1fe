"""Short cuts for the hot paths: requests as nearly every client sends them, parsed and answered without messages.

Each module has one function, (broker, context, frame, its front, position) → buffers, a request that waits, or None.
None means that the request is unusual in some way, and that nothing has been done yet: its handler takes it. Tests
compare the answers of both, byte for byte.
"""

from __future__ import annotations

from broker.fast import fetch, produce
from broker.requests.dispatch import Fast
from protocol.api_key import ApiKey

FAST: dict[ApiKey, tuple[Fast, int]] = {
    ApiKey.PRODUCE: (produce.produce, produce.FIRST_VERSION),
    ApiKey.FETCH: (fetch.fetch, fetch.FIRST_VERSION),
}
