"""FastStream: a subscriber that publishes messages, then commits them. Arguments: bootstrap, folder, input, output."""

import asyncio
import sys

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker, KafkaMessage

bootstrap, folder, source, target = sys.argv[1:]
broker = KafkaBroker(bootstrap, enable_idempotence=True, acks="all")


@broker.subscriber(
    source, group_id="faststream-copy", auto_offset_reset="earliest", ack_policy=AckPolicy.MANUAL,
    session_timeout_ms=6000, heartbeat_interval_ms=1000,
)  # fmt: skip
async def copy(body: bytes, message: KafkaMessage) -> None:
    await broker.publish(message.body, target, key=message.raw_message.key)
    await message.ack()


asyncio.run(FastStream(broker).run())
