"""The audit log: a line of JSON for each change, login and rejected request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, TextIO

from cli.times import show_time

MAX_TEXT: Final = 1000
"""Characters of each part of a line: a stranger can send a long user name or path."""


class ChangeLog:
    """Writes the lines. Neither passwords nor the contents of records are in them."""

    def __init__(self, stream: TextIO, now_ms: Callable[[], int]) -> None:
        self._stream = stream
        self._now_ms = now_ms

    def write(self, user: str, client: str, action: str, target: str, result: str, **details: object) -> None:
        """Writes what `user` did from the address `client`, and how it ended."""
        line = {"at": show_time(self._now_ms()), "user": user, "client": client, "action": action, "target": target}
        line = {name: value and value[:MAX_TEXT] for name, value in line.items()}
        self._stream.write(json.dumps({**line, **details, "result": result}) + "\n")
        self._stream.flush()
