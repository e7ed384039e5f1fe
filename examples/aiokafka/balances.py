"""Balances of accounts, from a compacted topic: the newest record of a key is its balance, none is a closed account."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer

BALANCES = "balances"


class Balances:
    """Has the balances while its `async with` block runs: those of the partitions that its instance is given."""

    def __init__(self, arguments: dict[str, object]) -> None:
        self.of: dict[str, int] = {}
        self._consumer = AIOKafkaConsumer(
            BALANCES, group_id="balances", auto_offset_reset="earliest", enable_auto_commit=False, **arguments
        )

    async def __aenter__(self) -> Balances:
        await self._consumer.start()
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])
        await self._consumer.stop()

    async def _read(self) -> None:
        async for record in self._consumer:
            account = record.key.decode()
            if record.value is None:
                self.of.pop(account, None)
            else:
                self.of[account] = int(record.value)
            await self._consumer.commit()
