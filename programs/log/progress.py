"""The progress of long work, on standard error: a bar on a terminal, else a line now and then."""

from __future__ import annotations

from typing import TextIO

from broker.clock import Clock

BAR_CHARACTERS = 30
REDRAWN_MS = 100
LINE_EVERY_MS = 5_000


class Progress:
    """The progress of work on `total_bytes`; call `advance` as bytes are done, and `clear` before other output."""

    def __init__(self, total_bytes: int, stream: TextIO, clock: Clock) -> None:
        self._total = total_bytes
        self._stream = stream
        self._clock = clock
        self._done = 0
        self._is_terminal = stream.isatty()
        self._told_ms = clock.monotonic_ms()
        self._drawn = False

    def advance(self, size_bytes: int) -> None:
        self._done += size_bytes
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._told_ms >= (REDRAWN_MS if self._is_terminal else LINE_EVERY_MS):
            self._told_ms = now_ms
            self._tell()

    def clear(self) -> None:
        """Removes the bar before a line of output; the next `advance` draws it again."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False

    def _tell(self) -> None:
        share = self._done / self._total if self._total else 1.0
        if self._is_terminal:
            filled = int(BAR_CHARACTERS * min(share, 1.0))
            bar = "#" * filled + "." * (BAR_CHARACTERS - filled)
            self._stream.write(f"\r[{bar}] {share:4.0%} of {megabytes(self._total)}")
            self._drawn = True
        else:
            self._stream.write(f"{share:.0%} of {megabytes(self._total)}\n")
        self._stream.flush()


def megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"
