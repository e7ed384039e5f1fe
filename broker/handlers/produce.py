"""Produce (0): appends record batches to partitions.

v0-2 carry message sets (v0, then v1 with timestamps), which are up-converted; v1 adds the throttle time, v2 the log
append time, v3 batches v2 and the transactional id (KIP-98), v5 the log start offset, v7 allows zstd (KIP-110), v8
per-record errors (KIP-467), v9 is flexible, v10 returns the current leader (KIP-951), v11 TRANSACTION_ABORTABLE, and
v12 adds partitions to the transaction by writing to them (KIP-890), v13 names topics by id (KIP-516). With acks=0
nothing is answered; an error then closes the connection, which tells the producer that a request failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from broker.dispatch.api import Api, WireParser
from broker.dispatch.call import Call
from broker.produce import wire
from broker.produce.message import parsed, parsed_in_turns
from broker.produce.serve import serve, serve_large
from broker.request.authorisation import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID, inside
from broker.request.eager import Waiting
from protocol.messages.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker


async def produce(call: Call[ProduceRequest]) -> object:
    """Appends to each partition separately: a failure affects no other partition."""
    broker, context = call.broker, call.context
    if context.is_large:
        return await serve_large(broker, context, await parsed_in_turns(call.request, call.version, call.turns()))
    outcome = serve(broker, context, parsed(call.request, call.version))
    return await outcome if isinstance(outcome, Waiting) else outcome


def to_its_end(broker: Broker, work: Coroutine[Any, Any, object]) -> Awaitable[object]:
    """Begins the work on a request: received records are appended even if the client disconnects meanwhile."""
    return broker.record_work.to_its_end(work)


HOW: Final = "for each topic; a transaction requires WRITE on its id first"

API = Api(
    ProduceRequest,
    ProduceResponse,
    produce,
    authorize=inside(HOW, WRITE_TRANSACTIONAL_ID, WRITE_TOPIC),
    wire=WireParser(wire.parse, serve, wire.FIRST_VERSION),
    to_its_end=to_its_end,
)
