"""The answer of a Produce, written in place in flexible versions (9 and later) if no partition failed.

Source of the layout: protocol/messages/produce.py, whose codec is the oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be

from broker.fetch.writing import finish_frame, write_uvarint
from broker.produce.message import response_in_turns, response_message
from broker.produce.request import ParsedProduce
from broker.produce.wire import FIRST_VERSION
from broker.request.context import Context
from broker.request.eager import begin
from protocol.types import Buffer

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker


def response(broker: Broker, context: Context, request: ParsedProduce) -> object:
    """Returns the answer: its frame, or a message if a partition failed or the version is old. For many partitions,
    returns a coroutine that makes the message, which a thread encodes."""
    if context.is_large:
        return begin(response_in_turns(broker, context, request))
    if request.first_error or request.version < FIRST_VERSION:
        return response_message(broker, context, request)
    quotas = broker.quotas
    return encoded(context.correlation_id, 0 if quotas is None else quotas.record(context), request)


def encoded(correlation_id: int, throttle_ms: int, request: ParsedProduce) -> list[Buffer]:
    """Returns the frame of the response."""
    writer = BytesWriter()
    write_i32_be(writer, 0)  # the size, once it is known
    write_i32_be(writer, correlation_id)
    writer.append(0)  # no tags
    write_uvarint(writer, len(request.topics) + 1)
    for topic in request.topics:
        writer.write(topic.key)
        write_uvarint(writer, topic.end - topic.first + 1)
        for number in range(topic.first, topic.end):
            partition = request.partitions[number]
            write_i32_be(writer, partition.index)
            write_i16_be(writer, 0)  # no error
            write_i64_be(writer, partition.base_offset)
            write_i64_be(writer, partition.log_append_time_ms)
            write_i64_be(writer, partition.log_start_offset)
            writer.append(1)  # no record errors
            write_i16_be(writer, 0)  # no message, no tags
        writer.append(0)  # no tags
    write_i32_be(writer, throttle_ms)
    writer.append(0)  # no tags
    return finish_frame(writer, [])
