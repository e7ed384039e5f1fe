"""Produce (0): appends record batches to partitions.

v0-2 carry message sets (v0, then v1 with timestamps), which are up-converted; v1 adds the throttle time, v2 the log
append time, v3 batches v2 and the transactional id (KIP-98), v5 the log start offset, v7 allows zstd (KIP-110), v8
per-record errors (KIP-467), v9 is flexible, v10 returns the current leader (KIP-951), v11 TRANSACTION_ABORTABLE, and
v12 adds partitions to the transaction by writing to them (KIP-890), v13 names topics by id (KIP-516).
With acks=0 nothing is answered; an error then closes the connection, which is how such a producer learns of it.
"""

from __future__ import annotations

from broker.exchange.authorisation import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID, by_handler
from broker.exchange.eager import Waiting
from broker.produce import wire
from broker.produce.message import parsed
from broker.produce.serve import serve
from broker.requests.api import Api, WireParser
from broker.requests.call import Call
from protocol.messages.produce import ProduceRequest, ProduceResponse


async def produce(call: Call[ProduceRequest]) -> object:
    """Appends to each partition by itself: one that fails affects no other."""
    outcome = serve(call.broker, call.context, parsed(call.request, call.version))
    return await outcome if isinstance(outcome, Waiting) else outcome


API = Api(
    ProduceRequest,
    ProduceResponse,
    produce,
    by_handler(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC),
    wire=WireParser(wire.parse, serve, wire.FIRST_VERSION),
)
