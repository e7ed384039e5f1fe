"""The time, for commands without an event loop."""

from __future__ import annotations

import time
from typing import Final

NS_PER_MS: Final = 1_000_000


class PlainClock:
    """The machine's clock; waiting blocks the process."""

    def now_ms(self) -> int:
        return time.time_ns() // NS_PER_MS

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // NS_PER_MS

    def sleep(self, delay_ms: int) -> None:
        time.sleep(max(delay_ms, 0) / 1000)
