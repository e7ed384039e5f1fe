"""Futures that perhaps no coroutine awaits."""

from __future__ import annotations

import asyncio
from typing import TypeVar

R = TypeVar("R")


def retrieve(ended: asyncio.Future[R]) -> None:
    """Retrieves a future's exception, so that asyncio doesn't report it as unseen if no caller awaits it."""
    if not ended.cancelled():
        ended.exception()
