"""The hot path by hand: requests as nearly every client sends them, read into locals and answered by a few packs.

Each module has one function, (broker, context, frame, its front, position) → buffers, what waits for them, or None.
None means that the request is unusual in some way, and that nothing has been done yet: the general way, in handlers/,
takes it. The tests hold both ways against each other, byte for byte.
"""

from __future__ import annotations

from broker.fast import fetch, produce
from broker.requests.dispatch import Fast
from protocol.api_key import ApiKey

FAST: dict[ApiKey, tuple[Fast, int]] = {
    ApiKey.PRODUCE: (produce.produce, produce.FIRST_VERSION),
    ApiKey.FETCH: (fetch.fetch, fetch.FIRST_VERSION),
}
